"""Statistics of requests, and how they would vary if other sessions of the same kind had been played.

The requests of one session depend on each other, so whole sessions are drawn with replacement (the cluster bootstrap:
Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). A draw is a row of counts: how often
each session is in it. Statistics take blocks of draws at once, and the draw of ones is what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CONFIDENCE = 0.95
LEAST_SESSIONS = 20
"""Of fewer the intervals are too narrow too often (tests/bench/compare_coverage.py)."""
DRAWS = 2_000
SEED = 20_261_130
"""The same runs give the same intervals."""
BLOCK_CELLS = 4_000_000
"""Counts of one block of draws: 32 MB."""
_WINDOW_ERRORS = 6.0
"""Draws whose quantile lies further off, in standard errors of its rank, are rare, and take all values to find."""


def draws(sessions: Sequence[int], number: int, seed: int = SEED) -> Iterator[tuple[Floats, ...]]:
    """Blocks of `number` draws in all: for each side (draws, its sessions), how often each session is in a draw of as
    many as it has. Sides are drawn independently of each other."""
    generator = np.random.default_rng(seed)
    most = max(1, BLOCK_CELLS // max(sessions))
    for start in range(0, number, most):
        size = min(most, number - start)
        yield tuple(_drawn(size, of_side, generator) for of_side in sessions)


def _drawn(size: int, sessions: int, generator: np.random.Generator) -> Floats:
    chosen = generator.integers(0, sessions, (size, sessions)) + sessions * np.arange(size)[:, None]
    counts = np.bincount(chosen.ravel(), minlength=size * sessions)
    return counts.reshape(size, sessions).astype(np.float64)


class Statistic(Protocol):
    """A number of the requests of a side, for each draw."""

    def of(self, counts: Floats) -> Floats:
        """(draws, sessions) -> (draws,); nan: that draw has no request that tells it."""
        ...


class RatioOfSums:
    """The sum of one quantity over all requests / that of another: a hit rate, the share of failures."""

    def __init__(self, upper: Floats, lower: Floats, sessions: Ints, number: int) -> None:
        """Each request's two quantities and its session, of `number` sessions."""
        self._upper = np.bincount(sessions, weights=upper, minlength=number)
        self._lower = np.bincount(sessions, weights=lower, minlength=number)

    def of(self, counts: Floats) -> Floats:
        lower = counts @ self._lower
        found: Floats = np.divide(counts @ self._upper, lower, out=np.full(len(counts), np.nan), where=lower > 0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Values of requests, ascending, and the session of each; sorted once for all quantiles of them."""

    values: Floats
    """+inf: it failed."""
    sessions: Ints
    number: int
    """Of sessions, those without a value included."""

    @classmethod
    def of(cls, values: Floats, sessions: Ints, number: int) -> Ordered:
        """Without those that are nan."""
        known = np.flatnonzero(~np.isnan(values))
        order = known[np.argsort(values[known], kind="stable")]
        return cls(values[order], sessions[order], number)


class Quantile:
    """By method 7 of Hyndman and Fan (1996), as in the reports: linear between two ranks; +inf next to +inf."""

    def __init__(self, ordered: Ordered, share: float) -> None:
        """Of one request at least."""
        self._values, self._sessions = ordered.values, ordered.sessions
        self._sizes = np.bincount(self._sessions, minlength=ordered.number).astype(np.float64)
        self._share = share
        self._first, self._last = self._window(ordered.number)
        below = self._sessions[: self._first]
        self._below = np.bincount(below, minlength=ordered.number).astype(np.float64)

    def _window(self, number: int) -> tuple[int, int]:
        """The first rank and the one after the last that nearly all draws need.

        A session moves the rank of a value by (its requests below the value) - share · (its requests).
        """
        rank = floor((len(self._values) - 1) * self._share)
        below = np.bincount(self._sessions[: rank + 1], minlength=number)
        error = float(np.sqrt(np.square(below - self._share * self._sizes).sum()))
        width = ceil(_WINDOW_ERRORS * error) + 2
        return max(0, rank - width), min(len(self._values), rank + width + 1)

    def of(self, counts: Floats) -> Floats:
        most = max(1, BLOCK_CELLS // (self._last - self._first))
        return np.concatenate([self._of(counts[start : start + most]) for start in range(0, len(counts), most)])

    def _of(self, counts: Floats) -> Floats:
        sizes = counts @ self._sizes
        found = np.full(len(counts), np.nan)
        base = counts @ self._below
        inside = base[:, None] + np.cumsum(counts[:, self._sessions[self._first : self._last]], axis=1)
        rank = (sizes - 1) * self._share
        low = np.floor(rank)
        is_in = (base <= low) & ((inside[:, -1] > low + 1) | (self._last == len(self._values))) & (sizes > 0)
        values = self._values[self._first : self._last]
        found[is_in] = _between(values, inside[is_in], low[is_in], rank[is_in] - low[is_in])
        for number in np.flatnonzero(~is_in & (sizes > 0)):
            whole = np.cumsum(counts[number, self._sessions])[None, :]
            found[number] = _between(self._values, whole, low[[number]], (rank - low)[[number]])[0]
        return found


def _between(values: Floats, reached: Floats, low: Floats, fraction: Floats) -> Floats:
    """The value at rank low + fraction of each draw. `reached`: (draws, values), its requests up to each value."""
    last = len(values) - 1
    lower = values[np.minimum((reached <= low[:, None]).sum(axis=1), last)]
    above = values[np.minimum((reached <= low[:, None] + 1).sum(axis=1), last)]
    is_exact = (fraction == 0) | (lower == above)
    is_far = np.isinf(above)
    step = np.where(is_exact | is_far, 0.0, np.where(is_far, 0.0, above) - np.where(np.isinf(lower), 0.0, lower))
    found: Floats = np.where(is_exact, lower, np.where(is_far, np.inf, lower + step * fraction))
    return found


def interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Between the percentiles of the draws of a statistic, (draws,). One that cannot be told, nan, may be anything."""
    beside = (1 - confidence) / 2
    lower = np.quantile(np.where(np.isnan(values), -np.inf, values), beside, method="lower")
    upper = np.quantile(np.where(np.isnan(values), np.inf, values), 1 - beside, method="higher")
    return float(lower), float(upper)
