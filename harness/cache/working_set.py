"""How many blocks a list of requests has in use, as it goes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.cache.block_references import BlockReferences, Whole


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Which distinct blocks there are, and when they are first and last referred to."""

    names: Whole
    """Shape (references,): the number of the block, from 0."""
    first: Whole
    """Shape (blocks,): number of the first request that has the block."""
    last: Whole
    """Shape (blocks,): number of the last one."""
    requests: Whole
    """Shape (references,): number of the request."""
    request_count: int

    def distinct(self, start: int, end: int) -> int:
        """Blocks that requests `start` to `end` (not included) refer to."""
        within = np.searchsorted(self.requests, [start, end])
        return len(np.unique(self.names[within[0] : within[1]]))

    def reusable(self) -> Whole:
        """Shape (requests,): after each request, blocks that were seen and will be asked for again."""
        begun = np.bincount(self.first, minlength=self.request_count)
        done = np.bincount(self.last, minlength=self.request_count)
        left: Whole = np.cumsum(begun - done)
        return left


def working_set(references: BlockReferences) -> WorkingSet:
    """The working set of the (sampled) blocks."""
    requests = references.requests
    distinct, first_at, names = np.unique(references.hashes, return_index=True, return_inverse=True)
    last = np.zeros(len(distinct), dtype=np.int64)
    np.maximum.at(last, names, requests)
    return WorkingSet(names, requests[first_at], last, requests, len(references.per_request))
