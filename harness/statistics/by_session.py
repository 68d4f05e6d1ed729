"""Intervals of what requests add up to, over the sessions that they belong to and the moments when they were due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
import numpy.typing as npt

from harness.statistics.bootstrap import (
    DRAWS,
    LEAST_SESSIONS,
    Floats,
    Ints,
    Numbers,
    Quantile,
    RatioOfSums,
    draws,
    interval,
)
from harness.statistics.bunching import design_effect
from harness.statistics.moments import STRETCHES, TIME_DRAWS, spread, too_few
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
    value = float(statistic.of(np.ones((1, bundles)))[0])
    if count < LEAST_SESSIONS:
        return Estimate(value, None, None, count, f"{count} sessions are too few for an interval")
    low, high = interval(np.concatenate([statistic.of(block) for (block,) in draws([bundles], number)]))
    return Estimate(value, low, high, count)


def quantiles_by_session(
    values: Floats, sessions: Ints, shares: Sequence[float], number: int = DRAWS, stretches: Numbers | None = None
) -> dict[float, Estimate]:
    """The exact quantile of each share, of times (requests,) above 0 that are not nan; +inf: it failed.

    `stretches`: of each request the stretch of time in which it was due, by `harness.statistics.moments.stretches_of`:
    these are drawn, too, and there is no interval of what lies in a few of them.
    """
    known = ~np.isnan(values)
    clusters, count = numbered(sessions[known])
    if not count:
        return {share: Estimate(None, None, None, 0, "no request tells it") for share in shares}
    values, clusters = values[known], clusters % BUNDLES
    found = {}
    for share in shares:
        by_session = Quantile(values, clusters, min(count, BUNDLES), share)
        by_time = [] if stretches is None else [Quantile(values, stretches[known], STRETCHES, share)]
        value = float(by_session.of(np.ones((1, min(count, BUNDLES))))[0])
        reasons = [too_few(by_session), *(too_few(one, moments=True) for one in by_time)]
        reason = next((one for one in reasons if one), "")
        if reason:
            found[share] = Estimate(value, None, None, count, reason)
            continue
        drawn = _log_draws(by_session, min(count, BUNDLES), number)
        varied = spread(np.log(value), drawn, [_log_draws(one, STRETCHES, TIME_DRAWS) for one in by_time])
        low, high = varied.interval()
        found[share] = Estimate(value, float(np.exp(low)), float(np.exp(high)), count)
    return found


def _log_draws(quantile: Quantile, clusters: int, number: int) -> Floats:
    """A time varies by a factor."""
    found: Floats = np.log(np.concatenate([quantile.of(block) for (block,) in draws([clusters], number)]))
    return found


def share_by_session(which: Bools, sessions: Ints, stretches: Numbers | None = None) -> Estimate:
    """The share of the requests for which `which` holds, both of shape (requests,), with Wilson's interval.

    What happens to requests of one session together counts less, by the design effect over sessions, and so does what
    happens in one of `stretches`, which are as `quantiles_by_session` takes them.
    """
    clusters, count = numbered(sessions)
    if not count:
        return Estimate(None, None, None, 0, "no request tells it")
    k, n = int(which.sum()), len(which)
    effects = [_design_effect(which, of) for of in (clusters % BUNDLES, stretches) if of is not None]
    low, high = wilson(k, n, max(effects)) or (0.0, 1.0)
    return Estimate(k / n, low, high, count)


def difference(first: Estimate, second: Estimate) -> tuple[float, float] | None:
    """Between which `second` - `first` lies of two shares (Newcombe, Statistics in Medicine 17, 1998, pages 873 to 890,
    method 10): it has a width even if both are 0. None: one is not known."""
    ends = (first.value, first.low, first.high, second.value, second.low, second.high)
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    p, low, high, q, q_low, q_high = known
    return q - p - hypot(q - q_low, high - p), q - p + hypot(q_high - q, p - low)


def _design_effect(which: Bools, clusters: Numbers) -> float:
    found, sizes = np.bincount(clusters, weights=which).astype(np.int64), np.bincount(clusters)
    return design_effect([bunch for bunch in zip(found.tolist(), sizes.tolist(), strict=True) if bunch[1]])


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
