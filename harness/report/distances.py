"""What became of tokens that had been sent before, by how much was sent in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.analysis.request_log import RequestLog
from harness.cache.block_references import BlockReferences, block_references
from harness.cache.reuse_distance import ReuseDistances, distances_of
from harness.cache.stack_distance import NEVER, stack_depths

LEAST_BLOCK, MOST_BLOCKS = 16, 1_000_000
STEPS = 2
"""Bins to each doubling of the distance."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Tokens of measured prompts that were last sent so far back."""

    from_tokens: float
    to_tokens: float
    """Distinct tokens touched since, their own included."""
    tokens: int
    cached_tokens: float
    """Those of them that the engine reports as cached."""

    @property
    def rate(self) -> float:
        return self.cached_tokens / self.tokens


@dataclass(frozen=True, slots=True)
class Reuse:
    distances: tuple[Distance, ...]
    block_tokens: int
    """What distances are counted in."""
    first_tokens: int
    """Of measured prompts, that had never been sent before."""
    curve: tuple[tuple[float, float], ...]
    """(capacity in tokens, token hit rate of an LRU cache of that capacity), of all requests of the log."""


def reuse(log: RequestLog, granularity_tokens: int) -> Reuse | None:
    """None: no measured request tells what it hit."""
    reporting = ((log.rows["phase"] == "measure") & log.rows["cached_tokens"].notna()).to_numpy(dtype=bool)
    if not reporting.any():
        return None
    lengths = sum(request.prompt_tokens for request in log.requests)
    block = max(granularity_tokens, LEAST_BLOCK)
    while lengths / block > MOST_BLOCKS:
        block *= 2
    references = block_references((request.prompt for request in log.requests), block)
    depths = stack_depths(references)
    hit = _hit_tokens(references, log.rows["cached_tokens"].to_numpy(dtype=np.float64, na_value=np.nan))
    own = reporting[references.requests] & references.can_hit
    seen = own & (depths != NEVER)
    # A bin ends with its power of two (or a part of it), so that a capacity of such a size parts two bins.
    bins = np.ceil(STEPS * np.log2(np.maximum(depths[seen], 1) * block)).astype(np.int64)
    return Reuse(
        distances=tuple(
            Distance(
                2 ** ((number - 1) / STEPS),
                2 ** (number / STEPS),
                int((bins == number).sum()) * block,
                float(hit[seen][bins == number].sum()),
            )
            for number in np.unique(bins).tolist()
        ),
        block_tokens=block,
        first_tokens=int((own & (depths == NEVER)).sum()) * block,
        curve=_curve(distances_of(references)),
    )


def _hit_tokens(references: BlockReferences, cached_tokens: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray:
    """Shape (references,): how many tokens of each block are within what its request reports as cached."""
    firsts = np.repeat(np.cumsum(references.per_request) - references.per_request, references.per_request)
    starts = (np.arange(len(firsts)) - firsts) * references.block_tokens
    return np.clip(cached_tokens[references.requests] - starts, 0, references.block_tokens)


def _curve(distances: ReuseDistances) -> tuple[tuple[float, float], ...]:
    finite = distances.distances_tokens[np.isfinite(distances.distances_tokens)]
    if not len(finite):
        return ()
    low, high = np.log2(finite[0]), np.log2(finite[-1])
    places = 2 ** np.linspace(low, high, min(80, 2 + int(8 * (high - low))))
    places[-1] = finite[-1]
    return tuple((float(at), distances.hit_rate(float(at))) for at in places)
