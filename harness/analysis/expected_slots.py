"""llama.cpp's slots, and for each request what it could have had: in an endless cache, and in any of the slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.analysis.expected_endless import Endless, EndlessAdmission
from harness.cache.base import Prompt
from harness.cache.held import Held
from harness.cache.slots import SlotAdmission, Slots


@dataclass(frozen=True, slots=True)
class Sight:
    """What was there for a prompt when it got its slot, in cached tokens."""

    anywhere: int
    """In an endless cache."""
    any_slot: int
    """In the slot that holds most of it, be it idle or not."""


class WatchedSlots(Slots):
    """Slots that look around before they give one away.

    A request that waits looks a prompt up when it gets its slot. So an endless cache is asked at that moment, too: what
    it finds there can have been computed while the request waited.
    """

    def __init__(self, endless: Endless, slots: int, context_tokens: int, **options: Any) -> None:
        """As `Slots`; `endless` learns what the slots compute."""
        super().__init__(slots, context_tokens, on_start=self._look_around, **options)
        self.sights: dict[SlotAdmission, Sight] = {}
        self._endless = endless
        self._peers: Sequence[WatchedSlots] = (self,)
        """The servers whose slots a request might have had."""

    @staticmethod
    def join(servers: Sequence[WatchedSlots]) -> None:
        """Let several servers look around in all of their slots, and share what an endless cache knows."""
        for server in servers:
            server._peers, server._endless = servers, servers[0]._endless

    def prefilled(self, admission: SlotAdmission) -> None:
        super().prefilled(admission)
        if admission.slot is not None:
            self._endless.prefilled(_as_endless(admission))

    def finish(self, admission: SlotAdmission, output: Prompt) -> None:
        if admission.slot is not None:  # first, as the slot goes to another request at once
            self._endless.finish(_as_endless(admission), output)
        super().finish(admission, output)

    def abandon(self, admission: SlotAdmission) -> None:
        if admission.slot is not None:
            self._endless.abandon(_as_endless(admission))
        super().abandon(admission)

    def forget(self) -> None:
        """Drop what only serves to say what there was anywhere, for who never asks; so memory has an end."""
        self._endless.clear()
        working = {slot.admission for slot in self._slots}
        self.sights = {admission: sight for admission, sight in self.sights.items() if admission in working}

    def sight(self, wanted: Held) -> Sight:
        """What is there for a prompt now."""
        held = max(peer.computed(wanted) for peer in self._peers)
        return Sight(self._endless.cached_tokens(wanted.items, wanted.tokens), min(held, wanted.tokens - 1))

    def peek(self, prompt: Prompt) -> int:
        """Cached tokens that a request with this prompt could have now in the best of the slots."""
        return self.sight(Held.of(prompt)).any_slot

    def _look_around(self, admission: SlotAdmission) -> None:
        self.sights[admission] = self.sight(admission.prompt)
        if admission.prefilled and not admission.refused:
            # By the log it had its first token before the model had a slot for it.
            self._endless.prefilled(_as_endless(admission))


def _as_endless(admission: SlotAdmission) -> EndlessAdmission:
    prompt = admission.prompt
    return EndlessAdmission(prompt.items, prompt.tokens, admission.cached_tokens, admission.prefilled)
