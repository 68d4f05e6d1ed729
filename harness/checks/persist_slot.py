"""One slot of llama-server for the check alone: it is free before, and nobody else's words are erased in it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.engines.llama_cpp_slots import Moved, SlotControl, SlotSeen
from harness.errors import InputError, TargetError

PATIENCE_S = 2.0
"""How long a slot may look busy after the answer of its request has come."""
PAUSE_S = 0.02


class OwnSlot:
    """Made by `take`; the check tells it how many tokens it has put there."""

    def __init__(self, url: str, control: SlotControl, number: int, erase_others: bool) -> None:
        self.number = number
        self._url = url
        self._control = control
        self._erase_others = erase_others

    def erase(self, expected_tokens: int) -> None:
        """Empty the slot if it holds what the check put there, `expected_tokens`, or nothing any more.

        Raises TargetError if it holds something else, unless others' may be erased.
        """
        if not self._erase_others:
            found = self._settled()
            if found.busy or found.held_tokens not in (0, expected_tokens):
                raise TargetError(
                    f"Slot {self.number} of {self._url} holds {_tokens(found)} that this check did not put there: "
                    "somebody else uses the server, so the check ended and erased nothing of theirs; try it while "
                    "nobody does"
                )
        self._control.erase(self.number)

    def save(self, name: str) -> Moved:
        return self._control.save(self.number, name)

    def restore(self, name: str) -> Moved:
        return self._control.restore(self.number, name)

    def _settled(self) -> SlotSeen:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = next((one for one in self._control.seen() or () if one.number == self.number), None)
            if found is None:
                raise TargetError(f"{self._url} shows its slot {self.number} no more, so the check ended")
            if not found.busy or time.monotonic() > deadline:
                return found
            time.sleep(PAUSE_S)


def take(url: str, control: SlotControl, erase_others: bool) -> OwnSlot:
    """The first slot that is idle and empty; with `erase_others`, else the idle one that holds least, emptied.

    Raises InputError if there is none.
    """
    seen = control.seen()
    if seen is None:
        if not erase_others:
            raise InputError(
                f"{url} does not show its slots (--no-slots), so whether one holds somebody's conversation is not "
                "known: start llama-server without --no-slots, or give --erase-others to use and empty slot 0"
            )
        return OwnSlot(url, control, 0, erase_others)
    free = [one for one in seen if not one.busy and not one.held_tokens]
    idle = [one for one in seen if not one.busy]
    if not free and not (erase_others and idle):
        raise InputError(_taken(url, seen))
    chosen = free[0] if free else min(idle, key=lambda one: one.held_tokens)
    return OwnSlot(url, control, chosen.number, erase_others)


def _taken(url: str, seen: Sequence[SlotSeen]) -> str:
    held = ", ".join(f"slot {one.number}: {_tokens(one)}" for one in seen)
    idle = [one for one in seen if not one.busy]
    remedy = (
        f"give --erase-others to let the check empty slot {min(idle, key=lambda one: one.held_tokens).number}"
        if idle
        else "try it when one is idle"
    )
    return f"Every slot of {url} is busy or holds somebody's conversation ({held}), and the check erases none: {remedy}"


def _tokens(one: SlotSeen) -> str:
    return "a request under way" if one.busy else f"{one.held_tokens:,} tokens"
