"""From when on a run is steady: TTFT, hit rate and requests in flight no longer change by more than chance.

Of each series the windows that are left out at the start are those of MSER-5 (White, Simulation 69, 1997; in batches of
five requests or more): what is left has the smallest error of its mean. MSER alone often leaves out what is chance, and
does not see that a series drifts on, so what it finds must also be a change that chance does not explain, and one that
is large enough to matter. A few windows that leave the level and come back to it are a disturbance, and no start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from harness.analysis.disturbance import Disturbance, disturbances
from harness.analysis.numbers import percent, with_unit
from harness.analysis.steady_series import BATCH, Kind, Series

Floats = npt.NDArray[np.float64]

LEAST_WINDOWS = 40
"""Of fewer nothing can be told."""
_AT_ONCE_S = 1.0
"""What is over before that is told by its requests: they were sent at once."""
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
    """Mean of what is left out; of the time before the last change, or of the first windows, of one that never is."""
    then: float
    """Mean of the time in which it is steady, or since the last change, or of the last windows."""
    changed_s: float | None = None
    """When one that is never steady changed last; None: all the time."""
    disturbed: tuple[Disturbance, ...] = ()
    """In order of time."""

    def sentence(self) -> str | None:
        """None: steady from the start."""
        if self.from_s == 0:
            return None
        way = "rises" if self.then > self.first else "falls"
        before, after = _shown(self.kind, self.first), _shown(self.kind, self.then)
        if self.from_s is None:
            when = "at the end" if self.changed_s is None else f"at {_seconds(self.changed_s)}, in the second half"
            return f"{self.name} still {way} {when}: {before} -> {after}"
        if self.from_s < _AT_ONCE_S:
            return f"{self.name} is {before} in the first requests, and then {after}"
        return f"{self.name} still {way} until {_seconds(self.from_s)}: {before} -> {after}"

    def disturbance(self) -> str | None:
        """The largest one, in words; None: there is none."""
        if not self.disturbed:
            return None
        one = max(self.disturbed, key=lambda each: abs(each.value - each.around))
        values = f"{_shown(self.kind, one.value)} against {_shown(self.kind, one.around)}"
        more = (
            f", and {len(self.disturbed) - 1} more time{'s' if len(self.disturbed) > 2 else ''}"
            if len(self.disturbed) > 1
            else ""
        )
        return f"{self.name} was disturbed at {_seconds(one.at_s)}{more}: {values}"


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
        passing = [text for one in self.settled if (text := one.disturbance())]
        whys = "; ".join([*(why for one in self.settled if (why := one.sentence())), *passing])
        if self.from_s is None:
            return f"never steady: {whys}. The numbers are of a change: let it run longer, or give it a ramp."
        if self.from_s == 0:
            return "; ".join(["steady from the start", *passing])
        after = "within a second" if self.from_s < _AT_ONCE_S else f"from {_seconds(self.from_s)} on"
        text = f"steady {after}: {whys}"
        if self.declared_is_enough:
            return f"{text}. The ramp of {_seconds(self.measured_from_s)} leaves that out."
        late = self.from_s - self.measured_from_s
        some = "requests" if late < _AT_ONCE_S else _seconds(late)
        return f"{text}. The first {some} that were measured are not: a ramp of {ceil(self.from_s)} s leaves them out."


def _seconds(value_s: float) -> str:
    return f"{value_s:.1f} s" if value_s < 10 else f"{value_s:.0f} s"


def _shown(kind: Kind, value: float) -> str:
    if kind == "share":
        return percent(value)
    return with_unit(value) if kind == "ms" else f"{value:.1f}"


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
    least = HIT_RATE_MATTERS if series.kind == "share" else float(np.log1p(RATIO_MATTERS))
    disturbed, is_level = disturbances(series, least)
    scale, values, end_s = series.scale[is_level], series.values[is_level], series.end_s[is_level]
    half = len(scale) // 2
    # The last fifth is not looked at by itself: so few are alike by chance.
    late, place = mser(scale, len(scale) - len(scale) // 5), mser(scale, half)
    place = place if _is_step(scale[:place], scale[place:], least) else 0
    sooner = _back(scale, place, least)
    place = place if _drifts(scale[sooner:], least) else sooner
    level, rest = float(values[:place].mean()) if place else _edge(values, 0), float(values[place:].mean())
    if late > half and _is_step(scale[half:late], scale[late:], least):
        late = half + max(1, _back(scale[half:], late - half, least))
        before, after = float(values[half:late].mean()), float(values[late:].mean())
        return Settled(series.name, series.kind, None, before, after, float(end_s[late - 1]), disturbed)
    if _drifts(scale[place:], least):
        first, last = _edge(values[place:], 0), _edge(values, len(values))
        return Settled(series.name, series.kind, None, first, last, None, disturbed)
    return Settled(series.name, series.kind, float(end_s[place - 1]) if place else 0.0, level, rest, None, disturbed)


def _back(scale: Floats, place: int, least: float) -> int:
    """Less to leave out: what comes before `place` is at the level already if it is no more off than `least` / 2 in the
    mean, on the side of the start. Where a start was far off, MSER stops at any dip after it.
    """
    if place == 0:
        return 0
    rest = scale[place:].mean()
    off = np.maximum((scale[:place] - rest) * np.sign(scale[:place].mean() - rest), 0.0)
    means = (np.cumsum(off[::-1]) / np.arange(1, place + 1))[::-1]
    level = np.flatnonzero((means <= least / 2) & (off < least))
    return int(level.min(initial=place))


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
