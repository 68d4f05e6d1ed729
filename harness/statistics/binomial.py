"""Exact binomial chances, and the bounds of Clopper and Pearson (Biometrika 26, 1934) that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p

_NEGLIGIBLE = 1e-18


def chance_at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) of X binomial (n, p), with 0 < p < 1."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    return _tail(k, n, p) if k < n * p else 1.0 - _tail(n - k - 1, n, 1.0 - p)


def chance_at_least(k: int, n: int, p: float) -> float:
    """P(X >= k): that n - X, which is binomial (n, 1 - p), is at most n - k."""
    return chance_at_most(n - k, n, 1.0 - p)


def _tail(k: int, n: int, p: float) -> float:
    """P(X <= k), summed from k down, where each term is smaller than the one before: for k below the mean."""
    term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p))
    total, odds = term, (1.0 - p) / p
    while k > 0 and term > _NEGLIGIBLE * total:
        term *= k / (n - k + 1) * odds
        total += term
        k -= 1
    return min(1.0, total)


def upper_bound(k: int, n: int, error: float) -> float:
    """The largest p of which so few as k of n, or fewer, are not less likely than `error`."""
    return 1.0 if k >= n else _root(lambda p: chance_at_most(k, n, p) > error)


def lower_bound(k: int, n: int, error: float) -> float:
    """The smallest p of which so many as k of n, or more, are not less likely than `error`."""
    return 0.0 if k <= 0 else _root(lambda p: chance_at_least(k, n, p) <= error)


def _root(holds_below: Callable[[float], bool]) -> float:
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if holds_below(middle) else (low, middle)
    return high
