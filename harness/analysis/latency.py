"""Percentiles of recorded values: exact, with linear interpolation between ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

ROUGH_BELOW = 100
"""The 99th percentile of fewer values than this is little more than their maximum."""

SHARES = (0.50, 0.90, 0.99)
"""Of the percentiles below, in their order."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `n` values; None where n is 0, +inf where the rank falls on a failure."""

    n: int
    p50: float | None
    p90: float | None
    p99: float | None
    p99_is_rough: bool
    """n is below `ROUGH_BELOW`."""


def percentiles_with(
    values: pd.Series | Sequence[float] | Floats, failures: Sequence[int], *, in_place: bool = False
) -> list[Percentiles]:
    """Of the values that are not null and of `failures` more which are +inf, for each of several numbers of those.

    `in_place`: an array may be left in another order.
    """
    if isinstance(values, np.ndarray):
        known = values
    else:
        known = pd.Series(values, dtype=None if len(values) else "float64").to_numpy(dtype=np.float64, na_value=np.nan)
    is_null = np.isnan(known)
    if is_null.any():
        known = known[~is_null]
    elif not in_place:
        known = known.copy()
    counts = [len(known) + more for more in failures]
    # Only the ranks that are asked for are put in their places.
    ranks = {rank for n in counts for share in SHARES for rank in _ranks(n, share) if 0 <= rank < len(known)}
    if ranks:
        known.partition(sorted(ranks))
    return [_percentiles(known, n) for n in counts]


def _percentiles(placed: Floats, n: int) -> Percentiles:
    if n == 0:
        return Percentiles(0, None, None, None, True)
    p50, p90, p99 = (_quantile(placed, n, share) for share in SHARES)
    return Percentiles(n, p50, p90, p99, n < ROUGH_BELOW)


def quantiles(values: Floats | npt.NDArray[np.float32], shares: Sequence[float]) -> list[float]:
    """`quantile` at each of the shares, of values in any order, without nan; they are left in another one."""
    n = len(values)
    values.partition(sorted({rank for share in shares for rank in _ranks(n, share)}))
    return [_quantile(values, n, share) for share in shares]


def quantile(ordered: Sequence[float] | Floats, share: float) -> float:
    """The value at rank h = (n - 1) * share, counted from 0, of ascending values; between two ranks, linearly.

    This is method 7 of Hyndman and Fan (1996), numpy's default; unlike numpy's it is right next to +inf.
    """
    return _quantile(ordered, len(ordered), share)


def _ranks(n: int, share: float) -> tuple[int, int]:
    """The ranks between which the value lies."""
    rank = (n - 1) * share
    return math.floor(rank), math.ceil(rank)


def _quantile(placed: Sequence[float] | Floats | npt.NDArray[np.float32], n: int, share: float) -> float:
    """Of `n` values, of which those that `placed` lacks at its end are +inf; those of `_ranks` must be in place."""
    below, above = _ranks(n, share)
    low, high = (float(placed[rank]) if rank < len(placed) else math.inf for rank in (below, above))
    if below == above:
        return low
    return high if math.isinf(high) else low + (high - low) * ((n - 1) * share - below)
