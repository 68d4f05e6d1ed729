"""The interval of a share by its score (Wilson, Journal of the American Statistical Association 22, 1927)."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from harness.statistics.bootstrap import CONFIDENCE


def wilson(k: int, n: int, effect: float = 1.0, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Between which the share lies of which k of n were seen; None: nothing was seen, n is 0.

    With p = k / n and z the normal quantile of both sides, it is
    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n): the shares that are no further from p than z
    of their own standard errors. Unlike p -+ z errors it has a width where none or all were seen, and stays within 0
    and 1.

    `effect`: so many of the n are worth one independent one (`harness.statistics.bunching.design_effect`); k and n
    shrink alike.
    """
    if n == 0:
        return None
    worth, p = n / effect, k / n
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    middle = p + z * z / (2 * worth)
    reach = z * sqrt(p * (1 - p) / worth + (z / (2 * worth)) ** 2)
    whole = 1 + z * z / worth
    # Rounding must not claim that a share which none (or all) showed is above 0 (or below 1).
    low = 0.0 if k == 0 else max(0.0, (middle - reach) / whole)
    return low, 1.0 if k == n else min(1.0, (middle + reach) / whole)
