"""mlx-lm's store of sequences as its scheduler fills it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cache.base import Item
from harness.cache.entries import Entries, EntryAdmission
from harness.sim.generation import Generation
from harness.sim.kv.items import items
from harness.sim.request import Request


@dataclass(slots=True, eq=False)
class StoreHold:
    """Its prompt as items, and its own copy of what was found."""

    items: list[Item]
    admission: EntryAdmission | None = None
    """None: the server has not looked at it."""

    @property
    def admitted(self) -> EntryAdmission:
        assert self.admission is not None
        return self.admission


class StoreCache:
    """Entries, by the rules of `harness.cache.entries`. There is no limit in tokens, so nothing ever lacks room."""

    def __init__(self, entries: int, capacity_tokens: int) -> None:
        """`capacity_tokens`: what the machine has, which the server does not look at."""
        self.capacity_tokens = capacity_tokens
        self._entries = Entries(entries)
        self._under_way: set[Request[StoreHold]] = set()

    @property
    def used_tokens(self) -> int:
        return sum([request.computed for request in self._under_way])

    @property
    def evictable_tokens(self) -> int:
        return self._entries.stored_tokens

    @property
    def evicted_tokens(self) -> int:
        """The server keeps no count of what it drops."""
        return 0

    def hold(self, generation: Generation) -> StoreHold:
        return StoreHold(items(generation.prompt_ids, generation.namespace))

    def look_up(self, request: Request[StoreHold]) -> None:
        """Copy what is found."""
        system_tokens = request.generation.system_tokens
        request.hold.admission = self._entries.admit(request.hold.items, system_tokens=system_tokens)
        request.computed = request.hold.admission.cached_tokens
        self._under_way.add(request)

    def next_border(self, request: Request[StoreHold]) -> int:
        """Where the next step of its prompt ends at the latest: behind the system message, or before the last token."""
        system_tokens, last = request.generation.system_tokens, request.prompt_tokens - 1
        return system_tokens if request.computed < system_tokens < last else last

    def add_computed(self, request: Request[StoreHold]) -> None:
        """Add the entries that a prompt leaves on its way."""
        self._entries.computed(request.hold.admitted, request.computed)

    def finish(self, request: Request[StoreHold]) -> None:
        """Add prompt and answer, its last token too."""
        generation = request.generation
        self._entries.finish(request.hold.admitted, items(generation.output_ids, generation.namespace))
        self._under_way.remove(request)

    def abandon(self, request: Request[StoreHold]) -> None:
        if request.hold.admission is not None:
            self._entries.abandon(request.hold.admission)
            self._under_way.remove(request)

    def clear(self) -> None:
        self._entries.clear()
