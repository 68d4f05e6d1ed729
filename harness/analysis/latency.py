"""Percentiles of recorded values: exact, with linear interpolation between ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

ROUGH_BELOW = 100
"""The 99th percentile of fewer values than this is little more than their maximum."""


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of `n` values; None where n is 0, +inf where the rank falls on a failure."""

    n: int
    p50: float | None
    p90: float | None
    p99: float | None
    p99_is_rough: bool
    """n is below `ROUGH_BELOW`."""


def percentiles(values: Iterable[float], failures: int = 0) -> Percentiles:
    """Of the values that are not null, and of `failures` more which are +inf."""
    ordered = sorted(float(value) for value in values if not pd.isna(value))
    ordered += [math.inf] * failures
    n = len(ordered)
    if n == 0:
        return Percentiles(0, None, None, None, True)
    return Percentiles(n, quantile(ordered, 0.50), quantile(ordered, 0.90), quantile(ordered, 0.99), n < ROUGH_BELOW)


def quantile(ordered: list[float], share: float) -> float:
    """The value at rank h = (n - 1) * share, counted from 0, of ascending values; between two ranks, linearly.

    This is method 7 of Hyndman and Fan (1996), numpy's default; unlike numpy's it is right next to +inf.
    """
    rank = (len(ordered) - 1) * share
    below = math.floor(rank)
    fraction = rank - below
    if fraction == 0:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    return high if math.isinf(high) else low + (high - low) * fraction
