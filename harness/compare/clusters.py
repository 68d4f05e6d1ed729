"""What requests are drawn with: the session that they belong to, or the stretch of time in which they were due."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.compare.rows import Rows, keys_of
from harness.statistics.bootstrap import Floats, Numbers, draws
from harness.statistics.by_session import BUNDLES

Numbered = tuple[Numbers, int]
"""Of each request the number of its cluster, and how many of those there are."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Of the reference and of the other side."""

    ours: Numbered
    theirs: Numbered
    is_shared: bool
    """Both are numbered alike, and a cluster is drawn for both at once."""

    @property
    def sizes(self) -> tuple[int, int]:
        return self.ours[1], self.theirs[1]

    def draws(self, number: int) -> Iterator[tuple[Floats, Floats]]:
        """Blocks of so many draws in all, for both sides in step: see `harness.statistics.bootstrap.draws`."""
        if self.is_shared:
            yield from ((block, block) for (block,) in draws(self.sizes[:1], number))
        else:
            yield from ((ours, theirs) for ours, theirs in draws(self.sizes, number))


def of_sessions(reference: Rows, other: Rows, is_paired: bool) -> Clusters:
    """The sessions that users played, with their sub-agents, or bundles of them where there are very many;
    `is_paired`: those of one number are the same."""
    names = [np.unique(table.root) for table in (reference, other)]
    if is_paired:
        names = [np.union1d(*names)] * 2
    ours, theirs = (
        ((np.searchsorted(known, table.root) % BUNDLES).astype(np.int16), min(len(known), BUNDLES))
        for known, table in zip(names, (reference, other), strict=True)
    )
    return Clusters(ours, theirs, is_paired)


def of_time(reference: Rows, other: Rows, is_paired: bool) -> list[Clusters]:
    """Stretches of time, of each side by itself.

    `is_paired`: once by when the reference sent each request first, so that a stretch has the same requests of both
    sides, and once by when the other side did.
    """
    if not is_paired:
        ours, theirs = ((table.stretch, table.stretches) for table in (reference, other))
        return [Clusters(ours, theirs, is_paired)]
    found = []
    keys = keys_of([reference, other])
    for table, own in zip((reference, other), keys, strict=True):
        names, first = np.unique(own, return_index=True)
        ours, theirs = ((table.stretch[first[np.searchsorted(names, key)]], table.stretches) for key in keys)
        found.append(Clusters(ours, theirs, is_paired))
    return found
