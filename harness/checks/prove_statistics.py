"""The median of a few numbers, with an interval that holds whatever their distribution."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

WANTED = 0.9
"""Confidence that an interval should have; of fewer than five numbers none has it."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The median, and where that of all such numbers lies."""

    median: float
    low: float
    high: float
    confidence: float
    """Of [low, high], exactly."""
    n: int


def median_interval(values: Sequence[float]) -> Interval:
    """The narrowest interval between the k-th smallest and the k-th largest value with the wanted confidence.

    Each value lies below the true median with probability 1/2, so the number that does is binomial, and
    confidence = 1 - 2 * sum over i < k of C(n, i) / 2^n. Nothing else is assumed. If none is wide enough, the whole
    range, with the confidence that it has. Raises ValueError if there are no values.
    """
    ordered, n = sorted(values), len(values)
    if not n:
        raise ValueError("a median needs values")
    k = 1
    while 2 * (k + 1) <= n and _confidence(n, k + 1) >= WANTED:
        k += 1
    return Interval(statistics.median(ordered), ordered[k - 1], ordered[n - k], max(0.0, _confidence(n, k)), n)


def chance_of(below: int, n: int) -> float:
    """How probable it is that so many of n pairs, or more, go one way by chance (one-sided sign test)."""
    return sum(comb(n, i) for i in range(below, n + 1)) / (1 << n)


def spread(values: Sequence[float]) -> float:
    """Two standard deviations of a normal distribution with the same median absolute deviation (times 1.4826)."""
    middle = statistics.median(values)
    return 2 * 1.4826 * statistics.median([abs(value - middle) for value in values])


def _confidence(n: int, k: int) -> float:
    return 1 - 2 * sum(comb(n, i) for i in range(k)) / (1 << n)
