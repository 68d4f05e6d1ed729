"""The Kolmogorov-Smirnov test of gaps against a distribution that is known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

CRITICAL = 1.6276
"""x sqrt(n) stays below it in 99 of 100 samples of n: Smirnov, Table for estimating the goodness of fit (1948)."""


def distance(sample: Sequence[float], cumulative: Callable[[float], float], finest: float = 0.0) -> float:
    """The largest difference between the sample's distribution and `cumulative`, in units of 1 / sqrt(n).

    Values below `finest` are known to be below it, and not more: differences of long times end in zeros.
    """
    values, n = sorted(sample), len(sample)
    coarse = sum(value < finest for value in values)
    found = [abs(coarse / n - cumulative(finest))]
    for rank in range(coarse, n):
        share = cumulative(values[rank])
        found += [(rank + 1) / n - share, share - rank / n]
    return math.sqrt(n) * max(found)


def exponential(rate: float) -> Callable[[float], float]:
    return lambda gap: -math.expm1(-rate * gap)


def gamma(shape: float, rate: float) -> Callable[[float], float]:
    """Mean 1 / rate. By the series of the lower incomplete gamma function, x^k e^-x sum x^j / (k (k+1) ... (k+j))."""

    def cumulative(gap: float) -> float:
        x = gap * shape * rate
        if x <= 0:
            return 0.0
        term = total = 1.0 / shape
        number = shape
        while term > total * 1e-12:
            number += 1
            term *= x / number
            total += term
        return min(1.0, total * math.exp(shape * math.log(x) - x - math.lgamma(shape)))

    return cumulative
