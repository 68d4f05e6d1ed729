"""The cache of llama.cpp's server: slots that hold one sequence of tokens each, and states kept in host memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.cache.base import Prompt
from harness.cache.held import NOTHING, Held
from harness.cache.host_tier import HostTier, single
from harness.errors import InputError

BATCH_TOKENS = 2048
"""llama.cpp's default for `--batch-size`: a request that is given up is noticed after a batch at the earliest."""
ROUNDING_TOKENS = 256
"""A slot's context is rounded up to a multiple of these."""


@dataclass(slots=True)
class _Slot:
    number: int
    held: Held = NOTHING
    admission: SlotAdmission | None = None
    """The request that works in it; None: it is idle."""
    released: int = -1
    """Its last release, counted over all slots; -1: none yet."""

    @property
    def busy(self) -> bool:
        return self.admission is not None

    def computed(self, wanted: Held) -> int:
        """Tokens of `wanted` that it holds and that are computed, as far as is known while it works on them."""
        common = self.held.common(wanted)
        if self.admission is None or self.admission.prefilled:
            return common
        return min(common, self.admission.cached_tokens)


@dataclass(slots=True, eq=False)
class SlotAdmission:
    """A request that waits for a slot, has one, or had one."""

    prompt: Held
    named: int | None
    """The slot that it asked for."""
    cache_prompt: bool
    slot: int | None = None
    """None while it waits, and in the end if it never got one: more requests overlapped than there are slots."""
    cached_tokens: int = 0
    """Known when it has a slot."""
    refused: bool = False
    """The prompt does not fit into a slot's context: the server answers 400, and nothing more is to be done."""
    prefilled: bool = False


class Slots:
    """The slots of one server, by the rules of llama.cpp of October 2026.

    A request takes one idle slot: the one whose content serves the largest share of the prompt, if that is more than
    `similarity` (`--slot-prompt-similarity`); else the one that was released first. It reuses the common prefix of
    the slot's content and the prompt, without the prompt's last token, and leaves prompt and output without the last
    token of the output, which was never computed.

    `context_tokens` is that of the whole server (`--ctx-size`): each slot has its share of it, or all of it if
    `unified` (`--kv-unified`, which is on where the number of slots is left to the server). `host_bytes` is the size
    of the tier in host memory (`--cache-ram`): 0 for none, None for no limit. What a state of n tokens takes there,
    `bytes_per_token * n + bytes_per_state`, depends on the model and on the KV cache's number format.

    A request waits while no slot is idle, or while the one that it names is busy. A slot that is released goes to the
    first of those that wait for it by name, else to the first of all; if that one waits for another, it is the last
    then, and the slot stays idle.

    Not modelled: `--cache-reuse`, context shift, sliding windows and recurrent layers, draft models, and a unified KV
    cache that the busy slots alone overfill (the real server then fails all their requests).
    """

    def __init__(
        self,
        slots: int,
        context_tokens: int,
        *,
        host_bytes: int | None = 0,
        bytes_per_token: int = 0,
        bytes_per_state: int = 0,
        unified: bool = False,
        similarity: float = 0.1,
        on_start: Callable[[SlotAdmission], None] | None = None,
    ) -> None:
        """`on_start` is told of each request that is about to get a slot, while the slots hold what they did before;
        `refused` of it is right by then.

        Raises InputError for what no server could be started with, and for a tier without the size of its states.
        """
        if slots < 1 or context_tokens < 1 or not 0 <= similarity <= 1:
            raise InputError(
                f"No server has {slots} slots, {context_tokens} tokens of context and a similarity of {similarity}: "
                "give at least 1 slot and 1 token, and a similarity from 0 to 1."
            )
        if host_bytes is not None and (host_bytes < 0 or (host_bytes > 0 and bytes_per_token < 1)):
            raise InputError(
                f"{host_bytes} bytes of host memory for states of {bytes_per_token} bytes a token: give 0 (no tier), "
                "None (no limit), or a number of bytes with the size of a token's state."
            )
        share = context_tokens if unified else context_tokens // slots
        self._slot_tokens = -(-share // ROUNDING_TOKENS) * ROUNDING_TOKENS
        self._shared_tokens = self._slot_tokens if unified else None
        self._similarity = single(similarity)
        self._on_start = on_start
        self._host: HostTier | None = None
        if host_bytes != 0:
            all_tokens = self._slot_tokens if unified else self._slot_tokens * slots
            self._host = HostTier(host_bytes, all_tokens, bytes_per_token, bytes_per_state)
        self._slots = [_Slot(number) for number in range(slots)]
        self._waiting: list[SlotAdmission] = []
        self._releases = 0

    def admit(self, prompt: Prompt, *, slot: int | None = None, cache_prompt: bool = True) -> SlotAdmission:
        """Give the prompt an idle slot, or the one that is named (`id_slot`), at once or when there is one.

        Raises InputError if there is no slot of that number.
        """
        if slot is not None and not 0 <= slot < len(self._slots):
            raise InputError(f"There is no slot {slot}: give one from 0 to {len(self._slots) - 1}.")
        admission = SlotAdmission(Held.of(prompt), slot, cache_prompt)
        if self._idle(slot):
            self._start(admission)
        else:
            self._waiting.append(admission)
        return admission

    def prefilled(self, admission: SlotAdmission) -> None:
        admission.prefilled = True

    def finish(self, admission: SlotAdmission, output: Prompt) -> None:
        slot = self._slot_of(admission)
        if slot is not None:
            whole = admission.prompt.then(output)
            slot.held = whole.first(max(admission.prompt.tokens, whole.tokens - 1))
            self._purge_idle_slots()
            self._release(slot, slot.held)

    def abandon(self, admission: SlotAdmission) -> None:
        """Its slot keeps the prompt: what was said is not known. Before the first token, a batch of it is there."""
        slot = self._slot_of(admission)
        if slot is not None:
            computed = admission.prompt.tokens if admission.prefilled else admission.cached_tokens + BATCH_TOKENS
            self._release(slot, admission.prompt.first(computed))

    def clear(self) -> None:
        self._slots = [_Slot(number) for number in range(len(self._slots))]
        self._releases = 0
        if self._host is not None:
            self._host.clear()

    @property
    def held_tokens(self) -> list[int]:
        """Of each slot, prompt and answer."""
        return [slot.held.tokens for slot in self._slots]

    def erase(self, slot: int) -> None:
        """Empty an idle slot (`POST /slots/N?action=erase`)."""
        self._slots[slot].held = NOTHING

    def held(self, slot: int) -> Prompt:
        """What a slot holds (`action=save`)."""
        return self._slots[slot].held.items

    def fill(self, slot: int, held: Prompt) -> None:
        """Put it into an idle slot (`action=restore`)."""
        self._slots[slot].held = Held.of(held)

    def computed(self, prompt: Held) -> int:
        """Tokens of `prompt` in the slot that has computed most of it, be it idle or not."""
        return max(slot.computed(prompt) for slot in self._slots)

    def _idle(self, named: int | None) -> list[_Slot]:
        """The slots that a request could have now."""
        return [slot for slot in self._slots if not slot.busy and named in (None, slot.number)]

    def _slot_of(self, admission: SlotAdmission) -> _Slot | None:
        """The slot that the request works in; if it waits for one, it does so no longer."""
        if admission in self._waiting:
            self._waiting.remove(admission)
        return None if admission.slot is None or admission.refused else self._slots[admission.slot]

    def _start(self, admission: SlotAdmission) -> None:
        wanted = admission.prompt
        admission.refused = wanted.tokens >= self._slot_tokens
        if self._on_start is not None:
            self._on_start(admission)
        slot, looks_into_host = self._choose(wanted, admission.named)
        admission.slot = slot.number
        if self._host is not None and looks_into_host:
            self._host.save(slot.held)
            slot.held = self._host.exchange(slot.held, wanted)
            self._host.trim()
        slot.admission = admission
        self._save_idle_slots()
        if admission.refused:
            self._release(slot, slot.held)
            return
        if admission.cache_prompt:
            admission.cached_tokens = min(slot.held.common(wanted), wanted.tokens - 1)
        slot.held = wanted
        self._purge_idle_slots()

    def _choose(self, wanted: Held, named: int | None) -> tuple[_Slot, bool]:
        """The slot, and whether host memory is looked into: if less than half of the slot's content would be kept."""
        idle = self._idle(named)
        best, served_best = None if named is None else idle[0], 0.0
        for slot in idle if self._similarity else ():
            served = single(slot.held.common(wanted) / wanted.tokens)
            if served > max(served_best, self._similarity):
                best, served_best = slot, served
        if best is None:  # of equals, as those that were never used, the last
            return min(idle, key=lambda slot: (slot.released, -slot.number)), True
        held = best.held.tokens
        # An empty slot gets here only if it is named, and 0 of 0 kept is not less than half for llama.cpp.
        kept = single(single(served_best * wanted.tokens) / held) if held else 1.0
        return best, self._similarity > 0 and kept < 0.5

    def _save_idle_slots(self) -> None:
        """What llama.cpp does when a request starts (`--cache-idle-slots`); a unified KV cache then has their room."""
        if self._host is None:
            return
        for slot in self._slots:
            if not slot.busy:
                if self._host.save(slot.held):
                    self._host.trim()
                if self._shared_tokens is not None:
                    slot.held = NOTHING

    def _purge_idle_slots(self) -> None:
        """Empty idle slots, the first one first, until all that is held fits into a unified KV cache."""
        if self._shared_tokens is None:
            return
        for slot in self._slots:
            if sum(one.held.tokens for one in self._slots) <= self._shared_tokens:
                return
            if not slot.busy:
                slot.held = NOTHING

    def _release(self, slot: _Slot, held: Held) -> None:
        slot.held, slot.admission, slot.released = held, None, self._releases
        self._releases += 1
        if self._waiting:
            by_name = [waiting for waiting in self._waiting if waiting.named == slot.number]
            admission = (by_name or self._waiting)[0]
            self._waiting.remove(admission)
            if self._idle(admission.named):
                self._start(admission)
            else:
                self._waiting.append(admission)
