"""The token hit rate of an LRU cache of blocks at every capacity at once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.cache.base import Prompt
from harness.cache.block_references import BlockReferences, Whole, block_references
from harness.cache.stack_distance import NEVER, stack_depths

ERRORS_STATED = 3.0
"""Standard errors that the bounds of a sampled hit rate lie away from it."""


class Bounds(NamedTuple):
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ReuseDistances:
    """How far apart the uses of the blocks of a list of requests are.

    The reuse distance of a block reference is the number of distinct tokens touched since the last use of its block,
    the block's own included: the smallest capacity at which the reference hits.
    """

    block_tokens: int
    prompt_tokens: int
    """Of all requests."""
    most_hits: int
    """Block references that a cache could serve if it had all blocks beforehand."""
    sampled_share: float
    """Share of the distinct blocks that were looked at; 1: all, and every number is exact."""
    distances_tokens: npt.NDArray[np.float64]
    """Distances of the looked-at references that could hit, ascending; infinite for the first use of a block."""
    blocks: Whole
    """For each of `distances_tokens`, the number of its block."""

    @property
    def first_uses(self) -> int:
        """Looked-at references whose distance is infinite."""
        return len(self.distances_tokens) - self._within(math.inf)

    def hit_tokens(self, capacity_tokens: float = math.inf) -> float:
        """Tokens that an LRU cache serves; infinite capacity: one that never evicts.

        A sample tells the misses, and `most_hits` is known of all. So what is hit always, which is what samples differ
        in most, costs no error: the same as the adjustment SHARDS-adj of Waldspurger, Park, Garthwaite, Ahmad:
        Efficient MRC construction with SHARDS, FAST 2015.
        """
        misses = (len(self.distances_tokens) - self._within(capacity_tokens)) / self.sampled_share
        return max(0.0, self.most_hits - misses) * self.block_tokens

    def hit_rate(self, capacity_tokens: float = math.inf) -> float:
        """Hit tokens / prompt tokens."""
        return self.hit_tokens(capacity_tokens) / self.prompt_tokens

    def bounds(self, capacity_tokens: float = math.inf) -> Bounds:
        """Where the true hit rate lies: `ERRORS_STATED` standard errors around `hit_rate`, equal to it if exact.

        Two errors of a sample of share s add up. The misses m_b of the blocks in the sample stand for all: the variance
        of their sum over s is estimated by sum(m_b^2) (1 - s) / s^2 (Horvitz and Thompson, 1952). And a distance of d
        blocks is itself counted in the sample, with a variance of d (1 - s) / s; so the curve may be shifted sideways.
        """
        share = self.sampled_share
        shift = ERRORS_STATED * math.sqrt((1 - share) / share * self.block_tokens * capacity_tokens)
        if math.isinf(capacity_tokens):
            shift = 0.0
        low, high = (
            self.hit_rate(at) + sign * ERRORS_STATED * self._standard_error(at)
            for at, sign in ((max(0.0, capacity_tokens - shift), -1), (capacity_tokens + shift, 1))
        )
        return Bounds(max(0.0, low), min(high, self.most_hits * self.block_tokens / self.prompt_tokens))

    def capacity_serving(self, share: float) -> int | None:
        """The smallest capacity in tokens that serves `share` (above 0) of what an infinite cache serves.

        It is the quantile `share` of the finite reuse distances too. None if nothing can be served.
        """
        if self.first_uses == len(self.distances_tokens):
            return None
        hits = share * self.hit_tokens() / self.block_tokens
        within = len(self.distances_tokens) - self.sampled_share * (self.most_hits - hits)
        # Rounded first: 0.9 * 10 is a little more than 9.
        place = min(max(1, math.ceil(round(within, 6))), self._within(math.inf))
        return math.ceil(float(self.distances_tokens[place - 1]))

    def _within(self, capacity_tokens: float) -> int:
        if math.isinf(capacity_tokens):
            return int(np.searchsorted(self.distances_tokens, math.inf, side="left"))
        return int(np.searchsorted(self.distances_tokens, capacity_tokens, side="right"))

    def _standard_error(self, capacity_tokens: float) -> float:
        share = self.sampled_share
        if share == 1:
            return 0.0
        of_block = np.bincount(self.blocks[self._within(capacity_tokens) :])
        # One more, as a sample without a miss does not prove that there is none.
        variance = (1 + float(np.square(of_block, dtype=np.float64).sum())) * (1 - share) / share**2
        return math.sqrt(variance) * self.block_tokens / self.prompt_tokens


def reuse_distances(prompts: Iterable[Prompt], block_tokens: int, sampled_share: float = 1.0) -> ReuseDistances:
    """The distances of the full blocks of all prompts, taken in order, each finished before the next starts.

    A request hits its leading run of cached blocks, at most floor((tokens - 1) / block_tokens) of them. Then its full
    blocks are touched from the last to the first, and the least recently touched ones beyond the capacity are evicted.
    Generated tokens are not cached. Raises ValueError for a share that is not above 0 and at most 1.
    """
    return distances_of(block_references(prompts, block_tokens, sampled_share))


def distances_of(references: BlockReferences) -> ReuseDistances:
    """The same, of references that are there already."""
    depths = stack_depths(references)[references.can_hit]
    # A block of the sample counts for itself; each other one of the sample for 1 / share.
    tokens = (1 + (depths - 1) / references.sampled_share) * references.block_tokens
    tokens[depths == NEVER] = math.inf
    order = np.argsort(tokens, kind="stable")
    names = references.hashes[references.can_hit]
    return ReuseDistances(
        references.block_tokens,
        int(references.prompt_tokens.sum()),
        references.most_hits,
        references.sampled_share,
        tokens[order],
        np.unique(names, return_inverse=True)[1][order],
    )
