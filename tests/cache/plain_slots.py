"""llama.cpp's slots and host memory once more, on plain token lists, sentence by sentence as its rules read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

Tokens = tuple[int, ...]


def lcp(first: Sequence[int], second: Sequence[int]) -> int:
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return count


def share(part: float, whole: int) -> np.float32:
    return np.float32(part) / np.float32(whole)


@dataclass(eq=False)
class PlainRequest:
    prompt: Tokens
    pinned: int | None
    cache_prompt: bool
    slot: int | None = None
    cached: int = 0
    refused: bool = False
    has_first_token: bool = False


@dataclass
class PlainSlots:
    """All sizes as the server has them after its own rounding."""

    slots: int
    slot_tokens: int
    host_tokens: int
    host_bytes: int | None = 0
    bytes_per_token: int = 0
    bytes_per_state: int = 0
    unified: bool = False
    similarity: float = 0.1
    held: dict[int, Tokens] = field(default_factory=dict)
    busy: set[int] = field(default_factory=set)
    released: list[int] = field(default_factory=list)
    """Slots by the order of their last release, the latest last."""
    host: list[Tokens] = field(default_factory=list)
    deferred: list[PlainRequest] = field(default_factory=list)
    evicted: int = 0
    loaded: int = 0
    purged: int = 0

    def content(self, slot: int) -> Tokens:
        return self.held.get(slot, ())

    def start(self, prompt: Tokens, pinned: int | None = None, cache_prompt: bool = True) -> PlainRequest:
        request = PlainRequest(prompt, pinned, cache_prompt)
        self.try_to_start(request)
        return request

    def try_to_start(self, request: PlainRequest) -> None:
        prompt, pinned = request.prompt, request.pinned
        free = [slot for slot in range(self.slots) if slot not in self.busy and pinned in (None, slot)]
        if not free:
            self.deferred.append(request)
            return
        alike: list[tuple[np.float32, int]] = []
        for slot in free:
            similar = share(lcp(self.content(slot), prompt), len(prompt))
            if similar > np.float32(self.similarity):
                alike.append((similar, -slot))
        if alike:
            similar, minus_slot = max(alike)
            slot = -minus_slot
            touch = bool(share(float(similar * np.float32(len(prompt))), len(self.content(slot))) < np.float32(0.5))
        elif pinned is not None:
            slot, touch = pinned, bool(self.content(pinned))
        else:
            never = [slot for slot in free if slot not in self.released]
            slot = max(never) if never else next(slot for slot in self.released if slot in free)
            touch = True
        if touch and self.host_bytes != 0:
            self.save(slot)
            self.load(slot, prompt)
            self.trim()
        self.busy.add(slot)
        if self.host_bytes != 0:
            for other in range(self.slots):
                if other not in self.busy:
                    if self.save(other):
                        self.trim()
                    if self.unified:
                        self.held[other] = ()
        request.slot = slot
        if len(prompt) >= self.slot_tokens:
            request.refused = True
            self.release(slot)
            return
        request.cached = min(lcp(self.content(slot), prompt), len(prompt) - 1) if request.cache_prompt else 0
        self.held[slot] = prompt
        self.purge()

    def end(self, request: PlainRequest, output: Tokens) -> None:
        if request.slot is not None and not request.refused:
            self.held[request.slot] = request.prompt + output[:-1]
            self.purge()
            self.release(request.slot)
        self.deferred = [other for other in self.deferred if other is not request]

    def give_up(self, request: PlainRequest) -> None:
        if request.slot is not None and not request.refused:
            computed = len(request.prompt) if request.has_first_token else request.cached + 2048
            self.held[request.slot] = request.prompt[:computed]
            self.release(request.slot)
        self.deferred = [other for other in self.deferred if other is not request]

    def release(self, slot: int) -> None:
        self.busy.remove(slot)
        self.released = [other for other in self.released if other != slot] + [slot]
        if self.deferred:
            named = [number for number, request in enumerate(self.deferred) if request.pinned == slot]
            self.try_to_start(self.deferred.pop(named[0] if named else 0))

    def purge(self) -> None:
        while self.unified and sum(map(len, self.held.values())) > self.slot_tokens:
            idle = [slot for slot in range(self.slots) if slot not in self.busy and self.content(slot)]
            if not idle:
                return
            self.held[idle[0]] = ()
            self.purged += 1

    def size(self, states: Sequence[Tokens]) -> int:
        return sum(len(state) * self.bytes_per_token + self.bytes_per_state for state in states)

    def save(self, slot: int) -> bool:
        state = self.content(slot)
        if not state:
            return False
        if any(other[: len(state)] == state for other in self.host):
            return False
        if self.host_bytes is not None and self.size([state]) > self.host_bytes:
            return False
        self.host = [other for other in self.host if state[: len(other)] != other]
        while self.host_bytes is not None and self.size([*self.host, state]) > self.host_bytes:
            self.host.pop(0)
            self.evicted += 1
        self.host.append(state)
        return True

    def load(self, slot: int, prompt: Tokens) -> None:
        state = self.content(slot)
        common = lcp(state, prompt)
        keep, similar = share(common, len(state)) if state else np.float32(-1), share(common, len(prompt))
        winner = None
        for other in self.host:
            common = lcp(other, prompt)
            if share(common, len(other)) < np.float32(0.25):
                continue
            if share(common, len(other)) > keep and share(common, len(prompt)) > similar:
                keep, similar, winner = share(common, len(other)), share(common, len(prompt)), other
        if winner is not None:
            self.host.remove(winner)
            self.held[slot] = winner
            self.loaded += 1

    def trim(self) -> None:
        limit = self.host_tokens
        if self.host_bytes is not None:
            while self.size(self.host) > self.host_bytes:
                self.host.pop(0)
                self.evicted += 1
            tokens = max(1, sum(map(len, self.host)))
            mean = max(np.float32(1), np.float32(self.size(self.host)) / np.float32(tokens))
            limit = max(limit, int(np.float32(self.host_bytes) / mean))
        while sum(map(len, self.host)) > limit:
            self.host.pop(0)
            self.evicted += 1
