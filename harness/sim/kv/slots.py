"""llama.cpp's slots as its scheduler fills them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.cache.base import Item
from harness.cache.slots import ROUNDING_TOKENS, SlotAdmission, Slots
from harness.sim.generation import Generation
from harness.sim.kv.items import items
from harness.sim.request import Request

_MIB = 2**20
TOKEN_BYTES, STATE_BYTES = 12, 236
"""What a state in host memory takes beside K and V: for each token, and besides (as the tiny model's states do)."""


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot as the engine's own page shows it."""

    number: int
    generation: Generation | None
    """What it works on; None: it is idle."""
    last: Generation | None
    """What it works on or worked on; None: it was never used."""
    held_tokens: int
    """Tokens of the sequence that it holds, prompt and answer."""


@dataclass(slots=True, eq=False)
class SlotHold:
    """Its prompt as items, and its slot or its place in the queue for one."""

    items: list[Item]
    admission: SlotAdmission | None = None
    """None: the server has not looked at it."""

    @property
    def admitted(self) -> SlotAdmission:
        assert self.admission is not None
        return self.admission

    @property
    def slot(self) -> int:
        """The number of the slot that it has."""
        assert self.admitted.slot is not None
        return self.admitted.slot


class SlotCache:
    """Slots of equal size, and the states in host memory, by the rules of `harness.cache.slots`."""

    def __init__(self, slots: int, capacity_tokens: int, cache_ram_mib: int, kv_bytes_per_token: int) -> None:
        self._slots = Slots(
            slots,
            capacity_tokens,
            host_bytes=None if cache_ram_mib < 0 else cache_ram_mib * _MIB,
            bytes_per_token=kv_bytes_per_token + TOKEN_BYTES,
            bytes_per_state=STATE_BYTES,
        )
        self._last: list[Request[SlotHold] | None] = [None] * slots
        self.slot_tokens = -(-(capacity_tokens // slots) // ROUNDING_TOKENS) * ROUNDING_TOKENS
        """Context of each slot, as the server rounds it."""

    @property
    def capacity_tokens(self) -> int:
        return self.slot_tokens * len(self._last)

    @property
    def used_tokens(self) -> int:
        return sum([state.held_tokens for state in self.states if state.generation is not None])

    @property
    def evictable_tokens(self) -> int:
        return sum([state.held_tokens for state in self.states if state.generation is None])

    @property
    def evicted_tokens(self) -> int:
        """The server keeps no count of what slots lose."""
        return 0

    @property
    def states(self) -> list[SlotState]:
        states = []
        for number, (held, last) in enumerate(zip(self._slots.held_tokens, self._last, strict=True)):
            if last is None or last.hold.admission is None:
                states.append(SlotState(number, None, None if last is None else last.generation, held))
            else:
                states.append(SlotState(number, last.generation, last.generation, last.computed))
        return states

    def hold(self, generation: Generation) -> SlotHold:
        return SlotHold(items(generation.prompt_ids, generation.namespace))

    def ask(self, request: Request[SlotHold]) -> None:
        """Ask for a slot; there may be one at once, or when another request leaves one."""
        generation = request.generation
        slot = None if generation.slot is None else generation.slot % len(self._last)
        request.hold.admission = self._slots.admit(request.hold.items, slot=slot, cache_prompt=generation.reads_cache)

    def started(self, request: Request[SlotHold]) -> bool:
        """Whether it has got its slot; then what the slot shares with the prompt is there."""
        admission = request.hold.admitted
        if admission.slot is None:
            return False
        request.generation.slot = admission.slot
        request.computed = admission.cached_tokens
        self._last[admission.slot] = request
        return True

    def refused(self, request: Request[SlotHold]) -> bool:
        """Whether its prompt is too long for the slot that it got; it has left it then."""
        return request.hold.admitted.refused

    def leave(self, request: Request[SlotHold]) -> None:
        """Leave the slot, or the queue. The slot keeps what is computed, and goes to the next that waits for it."""
        admission = request.hold.admission
        if admission is None:
            return
        request.hold.admission = None
        generation = request.generation
        if request.computed < request.prompt_tokens:
            admission.prompt = admission.prompt.first(request.computed)
        self._slots.prefilled(admission)
        if generation.output_ids and not admission.refused:
            # The model leaves the last token out, as it was never computed; where a step was, it is one more.
            said = request.computed - request.prompt_tokens
            output = items(generation.output_ids[:said], generation.namespace)
            self._slots.finish(admission, [*output, (-1, 1)])
        else:
            self._slots.abandon(admission)

    def erase(self, number: int) -> int:
        """Empty an idle slot; how many tokens it held."""
        held = self._slots.held_tokens[number]
        self._slots.erase(number)
        return held

    def ids(self, number: int) -> list[int]:
        """The token ids that a slot holds."""
        return [token for token, _ in self._slots.held(number)]

    def fill(self, number: int, ids: Sequence[int]) -> None:
        """Put token ids into an idle slot, in the place of what it holds."""
        self._slots.fill(number, items(ids))

    def clear(self) -> None:
        self._slots.clear()
