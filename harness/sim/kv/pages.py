"""SGLang's radix tree as its scheduler takes room in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.cache.base import Item
from harness.cache.radix import RadixAdmission, RadixTree
from harness.sim.generation import Generation
from harness.sim.kv.items import items
from harness.sim.request import Request


@dataclass(slots=True, eq=False)
class PageHold:
    """The items of a sequence, and its part of the tree and of the room beside it."""

    items: list[Item]
    """As far as they were needed: the prompt, and what was said when it was last looked up or stored."""
    admission: RadixAdmission | None = None
    """None: it waits."""

    @property
    def admitted(self) -> RadixAdmission:
        assert self.admission is not None
        return self.admission


class PageCache:
    """A tree in pages; it learns what is computed at the end of each step of a prompt, and an answer at its end."""

    def __init__(self, capacity_tokens: int, page_tokens: int, caching: bool) -> None:
        self.page_tokens = page_tokens
        self.capacity_tokens = capacity_tokens // page_tokens * page_tokens
        self._caching = caching
        self._tree = RadixTree(capacity_tokens, page_tokens)
        self._evicted_before = 0

    @property
    def free_tokens(self) -> int:
        return int(self._tree.free_tokens)

    @property
    def used_tokens(self) -> int:
        return self.capacity_tokens - self.free_tokens - self.evictable_tokens

    @property
    def evictable_tokens(self) -> int:
        return self._tree.evictable_tokens

    @property
    def evicted_tokens(self) -> int:
        return self._evicted_before + self._tree.evicted_tokens

    def hold(self, generation: Generation) -> PageHold:
        return PageHold(items(generation.prompt_ids, generation.namespace))

    def open(self, request: Request[PageHold]) -> None:
        """Look its sequence up, and lock what is found."""
        reads = self._caching and request.generation.reads_cache
        request.hold.admission = self._tree.open(self._sequence(request), reads)
        request.computed = request.hold.admitted.cached_tokens

    def close(self, request: Request[PageHold]) -> None:
        """Give up what it has. What was stored stays until its room is needed."""
        if request.hold.admission is not None:
            self._tree.close(request.hold.admission)
            request.hold.admission = None

    def take(self, parts: Sequence[tuple[Request[PageHold], int]]) -> None:
        """Take room for the next tokens of each. With pages, the engine makes room for one more of each."""
        spare = self.page_tokens if self.page_tokens > 1 else 0
        self._tree.make_room(sum([new + spare for _, new in parts]))
        for request, new in parts:
            self._tree.extend(request.hold.admitted, request.computed + new)

    def has_room(self, requests: Sequence[Request[PageHold]]) -> bool:
        """Whether each of them can go on by one token, after evictions."""
        return self._tree.make_room(self.page_tokens * len(self._at_border(requests)))

    def take_one_each(self, requests: Sequence[Request[PageHold]]) -> None:
        """Take room for one more token of each, which is there: the engine makes some for a page of each."""
        self._tree.make_room(self.page_tokens * len(requests))
        self._tree.add_pages([request.hold.admitted for request in self._at_border(requests)])

    def make_room(self, tokens: int) -> None:
        """Evict as long as fewer tokens are free and there is something to evict."""
        self._tree.make_room(tokens)

    def store(self, request: Request[PageHold]) -> None:
        """Add what is computed of it to the tree."""
        if self._caching:
            self._tree.store(request.hold.admitted, self._sequence(request), request.computed)

    def clear(self) -> None:
        self._evicted_before += self._tree.evicted_tokens
        self._tree.clear()

    def _at_border(self, requests: Sequence[Request[PageHold]]) -> Sequence[Request[PageHold]]:
        """Those whose next token begins a page."""
        page = self.page_tokens
        return requests if page == 1 else [request for request in requests if request.computed % page == 0]

    def _sequence(self, request: Request[PageHold]) -> list[Item]:
        sequence, generation = request.hold.items, request.generation
        if len(sequence) < request.tokens:
            said = generation.output_ids[len(sequence) - request.prompt_tokens :]
            sequence += items(said, generation.namespace)
        return sequence
