"""Intervals of what requests add up to, over the sessions that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.statistics.bootstrap import (
    DRAWS,
    LEAST_SESSIONS,
    Floats,
    Ints,
    Quantile,
    RatioOfSums,
    Statistic,
    draws,
    interval,
)
from harness.statistics.bunching import design_effect
from harness.statistics.wilson import wilson

Bools = npt.NDArray[np.bool_]

BUNDLES = 5_000
"""Of more sessions than this, so many bundles of equally many are drawn, which tell the same error at less cost."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval. None: not known, and `reason` says why."""

    value: float | None
    low: float | None
    high: float | None
    sessions: int
    """Those with a request that tells it."""
    reason: str = ""


def ratio_by_session(upper: Floats, lower: Floats, sessions: Ints, number: int = DRAWS) -> Estimate:
    """Sum of `upper` / sum of `lower`, such as cached over prompt tokens: a hit rate; `number` draws of sessions.

    All of shape (requests,); a request counts if neither is nan.
    """
    known = ~np.isnan(upper) & ~np.isnan(lower)
    clusters, count = numbered(sessions[known])
    if not count or lower[known].sum() <= 0:
        return Estimate(None, None, None, count, "no request tells it")
    bundles = min(count, BUNDLES)
    statistic = RatioOfSums(upper[known], lower[known], clusters % BUNDLES, bundles)
    return _estimates([statistic], count, number, [""])[0]


def quantiles_by_session(
    values: Floats, sessions: Ints, shares: Sequence[float], number: int = DRAWS
) -> dict[float, Estimate]:
    """The exact quantile of each share, of values (requests,) that are not nan; +inf: it failed."""
    known = ~np.isnan(values)
    clusters, count = numbered(sessions[known])
    if not count:
        return {share: Estimate(None, None, None, 0, "no request tells it") for share in shares}
    values, bundles, most = values[known], clusters % BUNDLES, min(count, BUNDLES)
    reasons = [_too_few(len(values), share) for share in shares]
    statistics = [Quantile(values, bundles, most, share) for share in shares]
    estimates = _estimates(statistics, count, number, reasons)
    return dict(zip(shares, estimates, strict=True))


def share_by_session(which: Bools, sessions: Ints) -> Estimate:
    """The share of the requests for which `which` holds, both of shape (requests,), with Wilson's interval.

    What happens to requests of one session together counts less: by the design effect over sessions.
    """
    clusters, count = numbered(sessions)
    if not count:
        return Estimate(None, None, None, 0, "no request tells it")
    k, n = int(which.sum()), len(which)
    bundles = clusters % BUNDLES
    found, sizes = np.bincount(bundles, weights=which).astype(np.int64).tolist(), np.bincount(bundles).tolist()
    low, high = wilson(k, n, design_effect(list(zip(found, sizes, strict=True)))) or (0.0, 1.0)
    return Estimate(k / n, low, high, count)


def numbered(sessions: Ints) -> tuple[Ints, int]:
    """(number of each one's session, from 0; how many there are)."""
    if not len(sessions):
        return sessions, 0
    if sessions.min() >= 0 and sessions.max() < 4 * len(sessions) + 1_000:
        seen = np.zeros(int(sessions.max()) + 1, dtype=np.int64)
        seen[sessions] = 1
        return (np.cumsum(seen) - 1)[sessions], int(seen.sum())
    names, places = np.unique(sessions, return_inverse=True)
    return places, len(names)


def _too_few(requests: int, share: float) -> str:
    """Beyond the quantile at least one request must be expected."""
    return f"{requests} requests are too few for an interval" if requests < round(1 / (1 - share)) else ""


def _estimates(statistics: Sequence[Statistic], sessions: int, number: int, reasons: Sequence[str]) -> list[Estimate]:
    """All of the same draws. `reasons`: why one has no interval, or empty."""
    bundles = min(sessions, BUNDLES)
    if sessions < LEAST_SESSIONS:
        reasons = [f"{sessions} sessions are too few for an interval"] * len(statistics)
    values = [float(statistic.of(np.ones((1, bundles)))[0]) for statistic in statistics]
    asked = [place for place, reason in enumerate(reasons) if not reason]
    drawn: dict[int, list[Floats]] = {place: [] for place in asked}
    for (block,) in draws([bundles], number if asked else 0):
        for place in asked:
            drawn[place].append(statistics[place].of(block))
    found = []
    for place, (value, reason) in enumerate(zip(values, reasons, strict=True)):
        low, high = interval(np.concatenate(drawn[place])) if place in drawn else (None, None)
        found.append(Estimate(value, low, high, sessions, reason))
    return found
