"""Statistics of requests, and how they would vary if other sessions of the same kind had been played.

The requests of one session depend on each other, so whole sessions are drawn with replacement (the cluster bootstrap:
Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). A draw is a row of counts: how often
each session is in it. Statistics take blocks of draws at once, and the draw of ones is what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import ceil, floor
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.signedinteger[Any]]
"""Of each request that of its session, of as many bits as are needed."""

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

    def __init__(self, upper: Floats, lower: Floats, sessions: Numbers, number: int) -> None:
        """Each request's two quantities and its session, of `number` sessions."""
        self._upper = np.bincount(sessions, weights=upper, minlength=number)
        self._lower = np.bincount(sessions, weights=lower, minlength=number)

    def of(self, counts: Floats) -> Floats:
        lower = counts @ self._lower
        found: Floats = np.divide(counts @ self._upper, lower, out=np.full(len(counts), np.nan), where=lower > 0)
        return found


class Quantile:
    """By method 7 of Hyndman and Fan (1996), as in the reports: linear between two ranks; +inf next to +inf.

    Only the values near it are put in order, as nearly no draw needs another one.
    """

    def __init__(
        self, values: Floats, sessions: Numbers, number: int, share: float, which: Bools | None = None
    ) -> None:
        """Each request's value, +inf if it failed and nan if it has none, and its session, of `number` sessions; of one
        value at least. `which`: those that are meant; None: all."""
        known = ~np.isnan(values) if which is None else which & ~np.isnan(values)
        self._all, self.share = (values, sessions, known), share
        self._sizes = np.bincount(sessions[known], minlength=number).astype(np.float64)
        self.requests = int(known.sum())
        self.told = int(np.count_nonzero(self._sizes))
        """Sessions that have a value."""
        rank, above = floor((self.requests - 1) * share), ceil((self.requests - 1) * share)
        placed = values[known]
        placed.partition([rank, above])
        self._ends = placed[rank], placed[above]
        width = self._width(known & (values <= placed[rank]))
        first, last = max(0, rank - width), min(self.requests, rank + width + 1)
        placed.partition([first, last - 1])
        low, high = placed[first], placed[last - 1]
        del placed
        self._values, self._sessions, self._below = self._window(first, last, low, high)
        self._is_rest = last == self.requests
        """No value is behind those."""

    def _width(self, up_to: Bools) -> int:
        """How far from its rank nearly all draws lie.

        A session moves the rank of a value by (its requests below the value) - share · (its requests).
        """
        below = np.bincount(self._all[1][up_to], minlength=len(self._sizes))
        error = float(np.sqrt(np.square(below - self.share * self._sizes).sum()))
        return ceil(_WINDOW_ERRORS * error) + 2

    def _window(self, first: int, last: int, low: float, high: float) -> tuple[Floats, Numbers, Floats]:
        """The values of ranks first to last - 1, which go from `low` to `high`, ascending; the session of each; and how
        many requests each session has below them."""
        values, sessions, known = self._all
        is_below = known & (values < low)
        # Of equal values any may be the first.
        spare = np.flatnonzero(known & (values == low))[: first - np.count_nonzero(is_below)]
        is_below[spare] = True
        within = np.flatnonzero(known & (values <= high) & ~is_below)
        order = within[np.argsort(values[within], kind="stable")][: last - first]
        below = np.bincount(sessions[is_below], minlength=len(self._sizes)).astype(np.float64)
        return values[order], sessions[order], below

    def beside(self) -> tuple[Floats, Floats]:
        """Shapes (sessions,): requests of each at the quantile or above, and at it or below."""
        values, sessions, known = self._all
        low, high = self._ends
        above, below = (
            np.bincount(sessions[known & which], minlength=len(self._sizes)).astype(np.float64)
            for which in (values >= low, values <= high)
        )
        return above, below

    def of(self, counts: Floats) -> Floats:
        most = max(1, BLOCK_CELLS // len(self._values))
        return np.concatenate([self._of(counts[start : start + most]) for start in range(0, len(counts), most)])

    def _of(self, counts: Floats) -> Floats:
        sizes = counts @ self._sizes
        found = np.full(len(counts), np.nan)
        base = counts @ self._below
        inside = base[:, None] + np.cumsum(counts[:, self._sessions], axis=1)
        rank = (sizes - 1) * self.share
        low = np.floor(rank)
        is_in = (base <= low) & ((inside[:, -1] > low + 1) | self._is_rest) & (sizes > 0)
        found[is_in] = _between(self._values, inside[is_in], low[is_in], rank[is_in] - low[is_in])
        for number in np.flatnonzero(~is_in & (sizes > 0)):
            values, sessions = self._whole
            whole = np.cumsum(counts[number, sessions])[None, :]
            found[number] = _between(values, whole, low[[number]], (rank - low)[[number]])[0]
        return found

    @cached_property
    def _whole(self) -> tuple[Floats, Numbers]:
        """All values, ascending, and the session of each."""
        values, sessions, known = self._all
        places = np.flatnonzero(known)
        order = places[np.argsort(values[known], kind="stable")]
        return values[order], sessions[order]


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
