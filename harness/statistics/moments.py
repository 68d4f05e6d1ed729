"""Moments of a run: what holds a server up makes many requests slow at once, whatever sessions they belong to.

Stretches of time are drawn beside sessions (`harness.statistics.bootstrap`), and what they tell beyond sessions and
chance is added. What happened only once or twice in a run tells nothing of how it varies, so then there is no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.statistics.bootstrap import CONFIDENCE, LEAST_SESSIONS, Floats, Ints, Numbers, Quantile, interval

STRETCHES = 30
"""Parts of a run's measured time. More of them tell of shorter moments, fewer of what holds a server up for longer."""
TIME_DRAWS = 200
"""Of stretches: they tell whether time says more than sessions, and a standard error."""
BEYOND_CHANCE = 1.5
"""The variance that 30 stretches of time show, over that of many sessions, is beyond this in 1 of 20 cases if requests
of one time have nothing in common: the 95th percentile of chi-square with 29 degrees of freedom / 29 is 1.47."""
LEAST_APART = 6
"""Requests on either side of a quantile that must be expected, and sessions and moments that they must be worth: then
in e^-6, 1 of 400 cases, the true quantile is beyond all that was seen. With 5 the intervals are too narrow too often
(tests/bench/compare_coverage.py)."""
_ROUNDING = 1e-12


def stretches_of(due_ns: Ints) -> Numbers:
    """Which of `STRETCHES` equal parts of the time from the first to the last each falls into."""
    if not len(due_ns):
        return np.zeros(0, dtype=np.int16)
    start_ns = int(due_ns.min())
    stretch = (due_ns - start_ns) * STRETCHES // (int(due_ns.max()) - start_ns + 1)
    return stretch.astype(np.int16)


def too_few(quantile: Quantile | None, *, moments: bool = False, whose: str = "") -> str:
    """Why there is no interval of a quantile, or nothing. `moments`: the clusters are stretches of time, not sessions;
    `whose`: behind what there is too little of, such as " of A"; None: no request has it.

    Clusters of k_c requests are worth (sum k_c)^2 / sum k_c^2 clusters of equally many (Kish, Survey Sampling, 1965):
    a percentile that lies in one moment of a run, such as its start, is worth one.
    """
    sessions = 0 if quantile is None else quantile.told
    if quantile is None or (not moments and sessions < LEAST_SESSIONS):
        return f"{sessions} sessions{whose} are too few for an interval"
    share = quantile.share
    if quantile.requests < round(LEAST_APART / min(share, 1 - share)):
        return f"{quantile.requests} requests{whose} are too few for an interval"
    names = _named("slow", 1 - share), _named("fast", share)
    for sizes, which in zip(quantile.beside(), names, strict=True):
        worth = float(sizes.sum() ** 2 / np.square(sizes).sum())
        if worth < LEAST_APART:
            what = "separate moments" if moments else "sessions"
            advice = " (--ramp leaves the start out)" if moments else ""
            return f"the {which}{whose} are worth {worth:.1f} {what}, too few for an interval{advice}"
    return ""


def _named(how: str, share: float) -> str:
    return f"{how}er half" if share == 0.5 else f"{how}est {100 * share:.4g} %"


@dataclass(frozen=True, slots=True)
class Spread:
    """How a number varies over draws of sessions, and over those of time that tell more."""

    draws: Floats
    """Of sessions, so many times as far from what was measured as `widened`."""
    by_time: tuple[Floats, ...]
    """Draws of stretches, of each clock that tells more than sessions and chance."""
    error: float
    """The standard error of both; nan: some draws are infinite; 0: all are the same but for rounding."""
    widened: float

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """As wide as the draws of sessions are, and as those of time."""
        ends = [interval(of, confidence) for of in (self.draws, *self.by_time)]
        return min(low for low, _ in ends), max(high for _, high in ends)


def spread(point: float, draws: Floats, by_time: Sequence[Floats]) -> Spread:
    """Of a number that was measured as `point`, over draws of sessions and, by each clock, of stretches of time.

    What time adds to the variance of sessions is added to it, in the manner of clustering in several ways (Cameron,
    Gelbach and Miller, J. of Business & Economic Statistics 29, 2011); what may be chance is not.
    """
    own, errors = standard_error(draws), [standard_error(of) for of in by_time]
    # A comparison with nan is false: where infinity is among the draws, time tells more.
    more = [place for place, error in enumerate(errors) if error > 0 and not error**2 <= BEYOND_CHANCE * own**2]
    more += [place for place, error in enumerate(errors) if np.isnan(error)]
    variance = own**2 + sum(errors[place] ** 2 - own**2 for place in more)
    error = float(np.sqrt(variance))
    widened = error / own if own > 0 and np.isfinite(error) else 1.0
    if widened != 1:
        draws = point + widened * (draws - point)
    return Spread(draws, tuple(by_time[place] for place in more), error, widened)


def standard_error(draws: Floats) -> float:
    """nan: some draws are infinite, or so many cannot be told that the interval is not known; 0: all are the same."""
    known = draws[~np.isnan(draws)]
    if not len(known) or len(draws) - len(known) > (1 - CONFIDENCE) / 2 * len(draws) or not np.isfinite(known).all():
        return float("nan")
    error = float(known.std())
    return error if error > _ROUNDING else 0.0
