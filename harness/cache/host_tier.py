"""llama.cpp's prompt cache in host memory (`--cache-ram`): whole states of slots, the oldest first."""

from __future__ import annotations

import struct

from harness.cache.held import Held

_FLOAT = struct.Struct("f")


def single(number: float) -> float:
    """`number` rounded to 32 bits, in which llama.cpp compares shares and computes its limits."""
    rounded: float = _FLOAT.unpack(_FLOAT.pack(number))[0]
    return rounded


class HostTier:
    """States that slots left behind, in the order in which they were saved.

    A state of n tokens is `bytes_per_token * n + bytes_per_state` large. `limit_bytes` None: no limit in bytes; then
    all states together have `limit_tokens` tokens at most.
    """

    def __init__(
        self, limit_bytes: int | None, limit_tokens: int, bytes_per_token: int = 0, bytes_per_state: int = 0
    ) -> None:
        self._limit_bytes = limit_bytes
        self._limit_tokens = limit_tokens
        self._bytes_per_token = bytes_per_token
        self._bytes_per_state = bytes_per_state
        self._states: list[Held] = []

    def clear(self) -> None:
        self._states = []

    def save(self, held: Held) -> bool:
        """Append the state unless it is empty, is the beginning of one that is there, or is larger than the limit.

        States that are its own beginning are dropped, and the oldest ones as far as it needs their room.
        """
        if not held.tokens or any(held.begins(state) for state in self._states):
            return False
        size = self._bytes([held])
        if self._limit_bytes is not None and size > self._limit_bytes:
            return False
        self._states = [state for state in self._states if not state.begins(held)]
        if self._limit_bytes is not None:
            self._drop_to_bytes(self._limit_bytes - size)
        self._states.append(held)
        return True

    def exchange(self, held: Held, prompt: Held) -> Held:
        """What a slot that holds `held` goes on with for `prompt`: the state that serves it better, which is taken
        out of here, else `held`.

        A better one has both a larger share of itself reused and a larger share of the prompt served than all before
        it; one that would be used for less than a quarter is left alone.
        """
        common = held.common(prompt)
        kept_best = single(common / held.tokens) if held.tokens else -1.0
        served_best = single(common / prompt.tokens)
        best = None
        for number, state in enumerate(self._states):
            common = state.common(prompt)
            kept, served = single(common / state.tokens), single(common / prompt.tokens)
            if kept >= 0.25 and kept > kept_best and served > served_best:
                kept_best, served_best, best = kept, served, number
        return held if best is None else self._states.pop(best)

    def trim(self) -> None:
        """Drop the oldest states, first over the limit in bytes, then over that in tokens.

        The latter is as many tokens as fit into the bytes at the mean size of a token here, if that is more.
        """
        limit = self._limit_tokens
        if self._limit_bytes is not None:
            self._drop_to_bytes(self._limit_bytes)
            mean = single(single(self._bytes(self._states)) / max(1, self._tokens()))
            limit = max(limit, int(single(single(self._limit_bytes) / max(1.0, mean))))
        while self._tokens() > limit:
            self._states.pop(0)

    def _drop_to_bytes(self, limit: int) -> None:
        while self._bytes(self._states) > limit:
            self._states.pop(0)

    def _tokens(self) -> int:
        return sum(state.tokens for state in self._states)

    def _bytes(self, states: list[Held]) -> int:
        return sum(state.tokens * self._bytes_per_token + self._bytes_per_state for state in states)
