"""SGLang's prefix cache: a radix tree over tokens, in pages, whose oldest leaves are dropped as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.cache.base import Item, Prompt
from harness.cache.prefix_tree import Node, PrefixTree
from harness.cache.prompt import beginning, tokens
from harness.errors import InputError


@dataclass(slots=True, eq=False)
class RadixAdmission:
    """The part of the tree that one request has locked, and the room that it has beside the tree."""

    prompt: Prompt
    prompt_tokens: int
    cached_tokens: int
    locked: Node
    own_tokens: int
    """Room taken for tokens that are not in the tree."""
    is_prefilled: bool = False
    stored_tokens: int = 0
    """Of its first tokens, those that the tree has (only where it was made by `open`)."""


class RadixTree:
    """Rules of SGLang 0.5.23, policy lru; for one request at a time they give the engine's own counts to the token.

    - A look-up finds the longest known prefix, at most prompt - 1 tokens, in whole pages. It stamps all nodes on its
      way with a logical clock, and splits the node in which it ends; both parts count as used.
    - The prompt is stored after the prefill, chunk by chunk if it was computed in chunks; at the end prompt and answer
      without its last token. So the prompt's end is a border, and the answer can go without the prompt (the engine
      stores the prompt once more to make sure of it). Only whole pages are stored.
    - What the tree knew already, and a page that is not full, is freed when the request has no more use for it.
    - What is found is locked; after the prefill the whole prompt is, up to the end of the request.
    - Only if an allocation lacks room, the leaf with the oldest stamp that is not locked is dropped, as a whole, until
      there is room. The prefill needs its uncached tokens, a step of the answer one token; with pages, the prefill
      a page more, a step one page, used or not.

    When several requests are under way, two things are taken simpler than they are:

    - `finish` takes the room for the whole answer.
    - The engine lets a request wait until there is room. A log says when a request was sent, not whether it waited,
      so nothing waits here: missing room is lent, and paid back by the next room that is freed.

    Who runs an engine's steps himself needs none of these: `open` looks up and locks, `make_room` evicts, `extend`
    takes room for tokens, `store` and `close` do what the engine does after a chunk and at the end.
    """

    def __init__(self, capacity_tokens: int | None, page_tokens: int = 1, chunk_tokens: int | None = None) -> None:
        """Room for `capacity_tokens` (None: without end) in pages of `page_tokens`.

        `chunk_tokens`: uncached tokens that one prefill chunk computes at most, a multiple of the page (SGLang's
        `--chunked-prefill-size`); None: all at once. Raises InputError.
        """
        if page_tokens < 1 or (capacity_tokens is not None and capacity_tokens < page_tokens):
            raise InputError(
                f"A cache of {capacity_tokens} tokens in pages of {page_tokens} holds nothing: "
                "give room for one page at least, and pages of at least 1 token."
            )
        if chunk_tokens is not None and (chunk_tokens < 1 or chunk_tokens % page_tokens):
            raise InputError(
                f"A prefill chunk of {chunk_tokens} tokens is not made of whole pages of {page_tokens}: change one."
            )
        self._capacity_tokens: float = (
            math.inf if capacity_tokens is None else capacity_tokens // page_tokens * page_tokens
        )
        self._page_tokens = page_tokens
        self._chunk_tokens = chunk_tokens
        self.clear()

    def clear(self) -> None:
        self._tree = PrefixTree(self._page_tokens)
        self._free_tokens = self._capacity_tokens
        self._evicted_tokens = 0

    @property
    def stored_tokens(self) -> int:
        """Tokens in the tree."""
        return self._tree.tokens

    @property
    def evicted_tokens(self) -> int:
        """Tokens dropped since the start or the last `clear`: the engine's counter `sglang:evicted_tokens_total`."""
        return self._evicted_tokens

    @property
    def capacity_tokens(self) -> float:
        """All the room there is, in whole pages."""
        return self._capacity_tokens

    @property
    def free_tokens(self) -> float:
        """Room that is neither the tree's nor a request's."""
        return self._free_tokens

    @property
    def evictable_tokens(self) -> int:
        """Tokens in the tree that are not locked."""
        return self._tree.tokens - self._tree.locked_tokens

    def open(self, prompt: list[Item], reads_cache: bool = True) -> RadixAdmission:
        """Look up a prompt of items of one token, and lock what is found; it has no room of its own yet."""
        most = self._whole_pages(len(prompt) - 1) if reads_cache else 0
        found, cached = self._tree.match(prompt[:most])
        self._tree.lock(found)
        return RadixAdmission(prompt, len(prompt), cached, found, own_tokens=0, stored_tokens=cached)

    def missing_tokens(self, admission: RadixAdmission, end: int) -> int:
        """Room, in whole pages, that it lacks for its first `end` tokens."""
        return max(0, self._pages(end) - admission.stored_tokens - admission.own_tokens)

    def make_room(self, needed: int) -> bool:
        """Evict until `needed` tokens are free; False if they never are."""
        self._take(0, needed)
        return self._free_tokens >= needed

    def extend(self, admission: RadixAdmission, end: int) -> None:
        """Take the room for its first `end` tokens; `make_room` has made it."""
        taken = self.missing_tokens(admission, end)
        self._free_tokens -= taken
        admission.own_tokens += taken

    def add_pages(self, admissions: Sequence[RadixAdmission]) -> None:
        """Take room for one page more of each, as `extend` does for those of a whole number of pages."""
        for admission in admissions:
            admission.own_tokens += self._page_tokens
        self._free_tokens -= self._page_tokens * len(admissions)

    def store(self, admission: RadixAdmission, sequence: list[Item], end: int) -> None:
        """The first `end` tokens of `sequence`, items of one token, are computed: store and lock their whole pages."""
        whole = self._whole_pages(end)
        stored, new = self._tree.insert(sequence[:whole], whole)
        self._tree.lock(stored)
        self._tree.unlock(admission.locked)
        admission.locked, admission.stored_tokens = stored, whole
        admission.own_tokens -= new
        self._give_back(admission, keep=self._pages(end) - whole)

    def close(self, admission: RadixAdmission) -> None:
        """Give all room back that is its own, and unlock what it had of the tree."""
        self._give_back(admission, keep=0)
        self._tree.unlock(admission.locked)

    def peek(self, prompt: Prompt) -> int:
        """Cached tokens that `admit` would find now; nothing is locked or touched."""
        return self._tree.known_tokens(beginning(prompt, self._whole_pages(tokens(prompt) - 1)))

    def admit(self, prompt: Prompt) -> RadixAdmission:
        length = tokens(prompt)
        found, cached = self._tree.match(beginning(prompt, self._whole_pages(length - 1)))
        self._tree.lock(found)
        uncached = length - cached
        own = self._pages(length) - cached
        self._take(own, needed=uncached + self._spare_tokens)
        return RadixAdmission(prompt, length, cached, found, own)

    def prefilled(self, admission: RadixAdmission) -> None:
        end = admission.cached_tokens
        if self._chunk_tokens is not None:
            while end + self._chunk_tokens < admission.prompt_tokens:
                end += self._chunk_tokens
                self._store(admission, admission.prompt, end)
        stored_to = self._store(admission, admission.prompt, admission.prompt_tokens)
        self._tree.lock(stored_to)
        self._tree.unlock(admission.locked)
        admission.locked = stored_to
        in_page = admission.prompt_tokens % self._page_tokens
        self._give_back(admission, keep=self._page_tokens if in_page else 0)
        admission.is_prefilled = True

    def finish(self, admission: RadixAdmission, output: Prompt) -> None:
        answer = beginning(output, tokens(output) - 1)
        self._decode(admission, tokens(answer))
        self._store(admission, [*admission.prompt, *answer], admission.prompt_tokens + tokens(answer))
        self._give_back(admission, keep=0)
        self._tree.unlock(admission.locked)

    def abandon(self, admission: RadixAdmission) -> None:
        """The engine computes the prompt to its end, and keeps it; the answer so far is not known, and is left out."""
        if not admission.is_prefilled:
            self.prefilled(admission)
        self.finish(admission, ())

    def _decode(self, admission: RadixAdmission, steps: int) -> None:
        """Room for `steps` tokens: a page when one begins. A step that begins none needs a free one all the same."""
        if not steps:
            return
        end = admission.prompt_tokens + steps
        taken = self._pages(end) - self._pages(admission.prompt_tokens)
        last_begins_page = (end - 1) % self._page_tokens == 0
        self._take(taken, needed=taken if last_begins_page else taken + self._page_tokens)
        admission.own_tokens += taken

    def _store(self, admission: RadixAdmission, sequence: Prompt, length: int) -> Node:
        """Store the whole pages of the first `length` tokens; what is new of them is the tree's from now on."""
        node, new = self._tree.insert(beginning(sequence, self._whole_pages(length)))
        admission.own_tokens -= new
        return node

    def _take(self, count: int, needed: int) -> None:
        while self._free_tokens < needed:
            dropped = self._tree.drop_oldest()
            if not dropped:
                break
            self._free_tokens += dropped
            self._evicted_tokens += dropped
        self._free_tokens -= count

    def _give_back(self, admission: RadixAdmission, keep: int) -> None:
        self._free_tokens += admission.own_tokens - keep
        admission.own_tokens = keep

    @property
    def _spare_tokens(self) -> int:
        return self._page_tokens if self._page_tokens > 1 else 0

    def _whole_pages(self, length: int) -> int:
        return length // self._page_tokens * self._page_tokens

    def _pages(self, length: int) -> int:
        """`length` rounded up to whole pages."""
        return -(-length // self._page_tokens) * self._page_tokens
