"""How much a list of requests has in use, as it goes on: in blocks, or in the tokens of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.cache.base import Prompt
from harness.cache.block_references import BlockReferences, Whole


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Which distinct blocks (or items) there are, what each counts, and when they are first and last referred to."""

    names: Whole
    """Shape (references,): the number of the block, from 0."""
    sizes: Whole
    """Shape (blocks,): what it counts: 1, or the tokens of an item."""
    first: Whole
    """Shape (blocks,): number of the first request that has the block."""
    last: Whole
    """Shape (blocks,): number of the last one."""
    requests: Whole
    """Shape (references,): number of the request."""
    request_count: int

    def distinct(self, start: int, end: int) -> int:
        """What requests `start` to `end` (not included) refer to, each block once."""
        within = np.searchsorted(self.requests, [start, end])
        return int(self.sizes[np.unique(self.names[within[0] : within[1]])].sum())

    def reusable(self) -> Whole:
        """Shape (requests,): after each request, what was seen and will be asked for again."""
        begun = np.bincount(self.first, self.sizes, self.request_count)
        done = np.bincount(self.last, self.sizes, self.request_count)
        return np.cumsum(begun - done).astype(np.int64)


def working_set(references: BlockReferences) -> WorkingSet:
    """The working set of the (sampled) blocks, in blocks."""
    ones = np.ones(len(references.hashes), dtype=np.int64)
    return _of(references.hashes, ones, references.requests, len(references.per_request))


def working_set_of_items(prompts: Sequence[Prompt]) -> WorkingSet:
    """The working set in tokens. An item's id stands for its text and for all before it, and has one length."""
    per_request = np.array([len(prompt) for prompt in prompts], dtype=np.int64)
    flat = np.fromiter(chain.from_iterable(chain.from_iterable(prompts)), np.int64, 2 * per_request.sum())
    return _of(flat[0::2], flat[1::2], np.repeat(np.arange(len(prompts)), per_request), len(prompts))


def _of(identities: npt.NDArray[Any], sizes: Whole, requests: Whole, request_count: int) -> WorkingSet:
    """Each of the arrays has the shape (references,), in the order of the requests."""
    distinct, first_at, names = np.unique(identities, return_index=True, return_inverse=True)
    last = np.zeros(len(distinct), dtype=np.int64)
    np.maximum.at(last, names, requests)
    return WorkingSet(names, sizes[first_at], requests[first_at], last, requests, request_count)
