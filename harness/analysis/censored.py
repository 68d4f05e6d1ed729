"""Requests that the end of the run cut off: what the percentiles would be if they had been let finish.

They had waited at least so long, and slow ones are cut off more often than fast ones, so percentiles without them are
too low. How much cannot be more than the bounds say, whatever the cut-off ones would have taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.analysis.latency import quantile
from harness.analysis.numbers import between, count, with_unit

Floats = npt.NDArray[np.float64]

SHARES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
_MOST_ALIKE = 1 + 1e-4
"""Bounds that are no further apart are one figure."""
MATTERS = 0.05
"""A percentile without the cut-off requests is in doubt if it may be higher by more than this part of it."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """One percentile, in ms. What was cut off counts, with the least and with the most that it can have taken."""

    name: str
    """p50, p90 or p99."""
    without_ms: float | None
    """Of the others alone, as the tables have it; None: there is no other."""
    low_ms: float
    """With each at its age, when it was cut off."""
    high_ms: float
    """With each at +inf."""
    kaplan_meier_ms: float | None
    """The best guess between them, if who is cut off does not depend on how long it would have taken; None: beyond the
    longest time that was seen."""

    @property
    def matters(self) -> bool:
        """Whether the tables' figure may be too low by more than `MATTERS` of it."""
        return self.without_ms is None or self.high_ms > (1 + MATTERS) * self.without_ms


@dataclass(frozen=True, slots=True)
class Censored:
    """Of one duration, such as TTFT."""

    what: str
    requests: int
    """All that are in the bounds, with those that were cut off."""
    cut_off: int
    """Those of which only their age is known."""
    oldest_ms: float | None
    """The highest age; None: none was cut off."""
    bounds: tuple[Bounds, ...]
    """p50, p90 and p99; empty: none was cut off."""

    def sentence(self) -> str | None:
        """Where the end of the run leaves a percentile in doubt; None: nowhere."""
        doubtful = [one for one in self.bounds if one.matters]
        if not doubtful:
            return None
        asked = f"{count(self.cut_off)} of {count(self.requests)} requests"
        return (
            f"{self.what}: the end of the run cut off {asked} (the oldest after {with_unit(self.oldest_ms)}), "
            f"which the tables leave out; {'; '.join(map(_doubt, doubtful))}. A longer run leaves less in doubt."
        )


def _doubt(one: Bounds) -> str:
    if math.isinf(one.high_ms):
        where = f"at least {with_unit(one.low_ms)}"
    else:
        ends = between(one.low_ms, one.high_ms, with_unit, "and")
        where = with_unit(one.low_ms) if one.high_ms <= _MOST_ALIKE * one.low_ms else f"between {ends}"
    guess = "" if one.kaplan_meier_ms is None else f", by Kaplan-Meier {with_unit(one.kaplan_meier_ms)}"
    return f"{one.name} is {where}{guess} (the tables have {with_unit(one.without_ms)})"


def censored(
    what: str, times_ms: Floats, ages_ms: Floats, failures: int = 0, later_ms: Floats | None = None
) -> Censored:
    """`times_ms` (requests that have it,), `ages_ms` (requests that were cut off before they had it,); no nan.

    `failures`: so many more took +inf, in all figures. `later_ms`: of requests that were cut off when they had it, as
    a first token may have come and the last not; the tables leave them out, and the bounds have them.
    """
    later = np.empty(0) if later_ms is None else later_ms
    requests = len(times_ms) + failures + len(later) + len(ages_ms)
    if not len(ages_ms):
        return Censored(what, requests, 0, None, ())
    told = np.concatenate([np.sort(times_ms), np.full(failures, np.inf)])
    times = np.sort(np.concatenate([told, later]))
    bounds = tuple(
        _bounds(name, share, _quantile(told, share) if len(told) else None, times, ages_ms)
        for name, share in SHARES.items()
    )
    return Censored(what, requests, len(ages_ms), float(ages_ms.max()), bounds)


def _bounds(name: str, share: float, tables: float | None, times: Floats, ages: Floats) -> Bounds:
    """A quantile never falls as a value of it grows: the least and the most of each value are those of the quantile."""
    least = np.sort(np.concatenate([times, ages]))
    most = np.concatenate([times, np.full(len(ages), np.inf)])
    return Bounds(
        name=name,
        without_ms=tables,
        low_ms=_quantile(least, share),
        high_ms=_quantile(most, share),
        kaplan_meier_ms=kaplan_meier(times, ages, share),
    )


def _quantile(ordered: Floats, share: float) -> float:
    # The two values around the rank are enough: millions of floats need not become a list.
    rank = (len(ordered) - 1) * share
    around = ordered[math.floor(rank) : math.floor(rank) + 2].tolist()
    return quantile(around, rank - math.floor(rank)) if len(around) == 2 else float(around[0])


def kaplan_meier(times: Floats, ages: Floats, share: float) -> float | None:
    """The first time by which `share` of all are done, as Kaplan and Meier (JASA 53, 1958) estimate it.

    Of those that are still under way at a time the part that ends then ends: S(t) is the product of 1 - d_i / n_i over
    the times t_i <= t, with d_i of n_i. Who was cut off at t_i was still under way then. None: S never falls so far.
    """
    at, done = np.unique(times, return_counts=True)
    under_way = len(times) - np.searchsorted(np.sort(times), at) + len(ages) - np.searchsorted(np.sort(ages), at)
    left = np.cumprod(1 - done / under_way)
    place = int(np.searchsorted(-left, -(1 - share) * (1 + 1e-12)))
    return float(at[place]) if place < len(at) else None
