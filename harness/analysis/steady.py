"""From when on a run is steady: TTFT, hit rate and requests in flight no longer change by more than chance.

Of each series the windows that are left out at the start are those of MSER-5 (White, Simulation 69, 1997; in batches of
five requests or more): what is left has the smallest error of its mean. MSER alone often leaves out what is chance, and
does not see that a series drifts on, so what it finds must also be a change that chance does not explain, and one that
is large enough to matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from harness.analysis.numbers import milliseconds, percent
from harness.analysis.steady_series import BATCH, Kind, Series

Floats = npt.NDArray[np.float64]

LEAST_WINDOWS = 40
"""Of fewer nothing can be told."""
_CRITICAL = 4.0
"""Standard errors that a change must have: more than the usual two, as MSER chooses the place that differs most."""
_MOST_CORRELATED = 0.95
_ROUNDING = 1e-12
HIT_RATE_MATTERS = 0.05
"""A hit rate has changed if it is further off than this."""
RATIO_MATTERS = 0.20
"""A time or a number of requests has changed if it is further off than this part of it."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What one series does."""

    name: str
    kind: Kind
    from_s: float | None
    """From when on it is steady; 0: from the start; None: not by the end."""
    first: float
    """Mean of the first windows of what it went through."""
    then: float
    """Mean of the time in which it is steady, or of the last windows of one that never is."""

    def sentence(self) -> str | None:
        """None: steady from the start."""
        if self.from_s == 0:
            return None
        way = "rises" if self.then > self.first else "falls"
        values = f"{_shown(self.kind, self.first)} -> {_shown(self.kind, self.then)}"
        if self.from_s is None:
            return f"{self.name} still {way} at the end: {values}"
        return f"{self.name} still {way} until {_seconds(self.from_s)}: {values}"


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Of one target; times in s since its load began."""

    from_s: float | None
    """From when on all series are steady; None: not by the end, or not known."""
    settled: tuple[Settled, ...]
    """Empty: too few requests to tell."""
    requests: int
    measured_from_s: float
    """Where the declared ramp ends and the phase measure begins."""

    @property
    def declared_is_enough(self) -> bool | None:
        """Whether all is steady from the declared ramp's end on; None: not known."""
        if not self.settled:
            return None
        return self.from_s is not None and self.from_s <= self.measured_from_s

    def sentence(self) -> str:
        """When, and why."""
        if not self.settled:
            return f"not known: {self.requests} requests are fewer than the {LEAST_WINDOWS * BATCH} that it takes"
        whys = "; ".join(why for one in self.settled if (why := one.sentence()))
        if self.from_s is None:
            return f"never steady: {whys}. The numbers are of a change: let it run longer, or give it a ramp."
        if self.from_s == 0:
            return "steady from the start"
        text = f"steady from {_seconds(self.from_s)} on: {whys}"
        if self.declared_is_enough:
            return f"{text}. The ramp of {_seconds(self.measured_from_s)} leaves that out."
        late = _seconds(self.from_s - self.measured_from_s)
        return f"{text}. The first {late} that were measured are not: a ramp of {ceil(self.from_s)} s leaves them out."


def _seconds(value_s: float) -> str:
    return f"{value_s:.1f} s" if value_s < 10 else f"{value_s:.0f} s"


def _shown(kind: Kind, value: float) -> str:
    if kind == "share":
        return percent(value)
    return f"{milliseconds(value)} ms" if kind == "ms" else f"{value:.1f}"


def steadiness(series: Sequence[Series], requests: int, measured_from_s: float = 0.0) -> Steadiness:
    """Of series that begin with the load's first request; `requests` are those of the longest one."""
    settled = tuple(settle(one) for one in series if len(one.values) >= LEAST_WINDOWS)
    times = [one.from_s for one in settled]
    known = [time for time in times if time is not None]
    from_s = max(known) if known and len(known) == len(times) else None
    return Steadiness(from_s, settled, requests, measured_from_s)


def settle(series: Series) -> Settled:
    """When one series becomes steady. It takes `LEAST_WINDOWS`.

    Its start is left out as far as MSER-5 says, within the first half. If it would leave out more, which White takes
    for a run that is too short, or if what is left drifts, it never settles. All of it has to matter, and to be beyond
    chance.
    """
    scale, values = series.scale, series.values
    least = HIT_RATE_MATTERS if series.kind == "share" else float(np.log1p(RATIO_MATTERS))
    half = len(scale) // 2
    # The last fifth is not looked at by itself: so few are alike by chance.
    late, place = mser(scale, len(scale) - len(scale) // 5), mser(scale, half)
    if not _is_step(scale[:place], scale[place:], least):
        place = 0
    is_late = late > half and _is_step(scale[half:late], scale[late:], least)
    if is_late or _drifts(scale[place:], least):
        return Settled(series.name, series.kind, None, _edge(values, 0), _edge(values, len(values)))
    if place == 0:
        return Settled(series.name, series.kind, 0.0, _edge(values, 0), float(values.mean()))
    first = _edge(values[:place], 0)
    return Settled(series.name, series.kind, float(series.end_s[place - 1]), first, float(values[place:].mean()))


def mser(values: Floats, most: int) -> int:
    """How many of the first values to leave out, at most `most`, by White's rule: so that of the n that are left
    sum (y - mean)^2 / n^2, the square of the error of their mean, is smallest.
    """
    # Sums from the end on, of values around their mean, so that squares do not swallow differences.
    around = values[::-1] - values.mean()
    n = np.arange(1, len(values) + 1)
    squares = np.cumsum(around**2) - np.cumsum(around) ** 2 / n
    errors = (squares / n**2)[::-1][: most + 1]
    # Of values that are all alike, the first: what differs then is rounding.
    return int(np.argmax(errors <= errors.min() + _ROUNDING * float(around @ around)))


def _is_step(before: Floats, rest: Floats, least: float) -> bool:
    """Whether the mean of `rest` is another one than before."""
    if not len(before):
        return False
    around = [_straight(rest)[1]] if len(rest) >= len(before) else [_straight(part)[1] for part in (before, rest)]
    variance = _long_run_variance(np.concatenate(around)) * (1 / len(before) + 1 / len(rest))
    difference = abs(float(before.mean() - rest.mean()))
    return difference >= least and difference > _CRITICAL * float(np.sqrt(variance))


def _drifts(rest: Floats, least: float) -> bool:
    """Whether a straight line through it goes up or down."""
    slope, around = _straight(rest)
    n = len(rest)
    error = float(np.sqrt(12 * _long_run_variance(around) / n**3))
    return abs(slope) * n >= least and abs(slope) > _CRITICAL * error


def _straight(values: Floats) -> tuple[float, Floats]:
    """(slope by window, what is left) of the straight line through the values, by least squares."""
    at = np.arange(len(values)) - (len(values) - 1) / 2
    squares = float(at @ at)
    slope = float(at @ values) / squares if squares else 0.0
    return slope, values - values.mean() - slope * at


def _long_run_variance(around: Floats) -> float:
    """n times the variance of the mean of n values that depend on their neighbours, as a first-order process has it:
    s^2 (1 + r) / (1 - r), with their lag-1 correlation r, which is too low in short series (Kendall, Biometrika 41,
    1954): by (1 + 3 r) / n."""
    squares, n = float(around @ around), len(around)
    if squares == 0:
        return 0.0
    r = float(around[1:] @ around[:-1]) / squares
    r = min(max(r + (1 + 3 * r) / n, 0.0), _MOST_CORRELATED)
    return squares / max(1, n - 2) * (1 + r) / (1 - r)


def _edge(values: Floats, place: int) -> float:
    """Mean of a tenth of the values, at one end."""
    tenth = max(1, len(values) // 10)
    return float((values[:tenth] if place == 0 else values[-tenth:]).mean())
