"""The search for the highest rate that meets an objective: which rates are tried, for how long, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, log, sqrt

from harness.errors import InputError
from harness.slo.judgement import Count, Verdict, factor_to_decide, is_promising, judge

STRIDE = 4.0
"""Going up, each rate is so many times the one before: no probe overloads a server much more than it must."""
LEAST_PRECISION = 0.01
ROUNDING = 1.001
"""Rates between the ends have four digits."""
LONGER = (2.0, 3.0, 4.0)
"""How many times as long the next look at an undecided rate may take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where and how exactly to search."""

    lowest: float
    highest: float
    """Sessions a second."""
    precision: float
    """The search ends when the lowest rate that was not shown to meet it is at most 1 + precision times the highest
    that was."""
    confidence: float
    """That nothing which the whole search decides is wrong."""
    length_s: float
    """Of the first look at a rate."""
    looks: int
    """At most so many at each rate, each longer than the one before."""

    def check(self) -> None:
        """Raise InputError for what nothing could be found with."""
        if not 0 < self.lowest < self.highest:
            raise InputError(
                f"rates from {self.lowest:g} to {self.highest:g} are no range: give a lowest rate above 0, and a "
                "highest above it."
            )
        if not LEAST_PRECISION <= self.precision <= STRIDE - 1:
            raise InputError(
                f"precision is {self.precision:g}: give a number from {LEAST_PRECISION} to {STRIDE - 1:g}, such as 0.1."
            )
        if not 0.5 <= self.confidence < 1:
            raise InputError(f"confidence is {self.confidence:g}: give a number from 0.5 to below 1, such as 0.95.")
        if not self.length_s >= 1:
            raise InputError(f"a probe of {self.length_s:g} s is none: give at least 1 s.")

    @property
    def most_probes(self) -> int:
        """How many rates are tried at most: on the way up, then by halves of the logarithm, twice if need be."""
        ratio = self.highest / self.lowest
        up = 1 + ceil(log(ratio) / log(STRIDE) - 1e-9)
        steps = log(min(ratio, STRIDE)) / log(1 + self.precision)
        return up + 2 * ceil(max(0.0, log(steps) / log(2)) - 1e-9)

    @property
    def error(self) -> float:
        """Chance to be wrong that each look may have, so that all together have 1 - confidence (Bonferroni)."""
        return (1 - self.confidence) / (self.most_probes * self.looks)


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found at one rate."""

    rate: float
    verdict: Verdict
    looks: int
    length_s: float
    """Of the last look, which decides."""
    counts: tuple[Count, ...]
    """Of the last look, one for each limit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """All probes in their order, and what follows."""

    plan: Plan
    probes: tuple[Probe, ...]

    @property
    def met(self) -> float | None:
        """The highest rate that was shown to meet the objective; None: no rate was."""
        return max(self._with("met"), default=None)

    @property
    def not_met(self) -> float | None:
        """The lowest rate that was shown not to meet it; None: no rate was."""
        return min(self._with("not met"), default=None)

    @property
    def undecided(self) -> list[float]:
        """Rates of which it could not be told, in ascending order."""
        return sorted(self._with("undecided"))

    def probe_at(self, rate: float) -> Probe:
        return next(probe for probe in self.probes if probe.rate == rate)

    def _with(self, verdict: Verdict) -> list[float]:
        return [probe.rate for probe in self.probes if probe.verdict == verdict]


Look = Callable[[float, float], Sequence[Count]]
"""Load the server at a rate for some seconds, and count."""


def find_rate(plan: Plan, look: Look) -> Answer:
    """The highest rate of `plan` that meets the objective, if whoever meets it at a rate does so at any lower one.

    Each look counts for itself: a longer one at a rate takes the place of those before it. On the way up one look is
    enough where it looks well, as a higher rate, if it is met, speaks for the lower ones, and takes less time to do so.
    """
    probes: dict[float, Probe] = {}
    low: list[float] = []
    """Rates on the way up that looked well, the highest last."""
    high = None
    for rate in _upwards(plan):
        is_last = rate == plan.highest
        probes[rate] = _probe(plan, rate, look, is_last)
        if probes[rate].verdict != "met" and (is_last or not is_promising(probes[rate].counts)):
            high = rate
            break
        low.append(rate)
    while low and high is not None:
        while high / low[-1] > (1 + plan.precision) * ROUNDING and len(probes) < plan.most_probes:
            middle = float(f"{sqrt(low[-1] * high):.4g}")
            probes[middle] = _probe(plan, middle, look)
            if probes[middle].verdict == "met":
                low.append(middle)
            else:
                high = middle
        if probes[low[-1]].verdict == "undecided":
            probes[low[-1]] = _probe(plan, low[-1], look, before=probes[low[-1]])
        if probes[low[-1]].verdict == "met":
            break
        high = low.pop()
    return Answer(plan, tuple(probes.values()))


def _upwards(plan: Plan) -> Iterator[float]:
    rate = plan.lowest
    while rate < plan.highest * (1 - 1e-9):
        yield rate
        rate *= STRIDE
    yield plan.highest


def _probe(plan: Plan, rate: float, look: Look, is_last: bool = True, before: Probe | None = None) -> Probe:
    """Look until it is decided. `is_last`: else a look that is promising is enough. `before`: looks that were made."""
    made = before
    while made is None or (made.verdict == "undecided" and made.looks < plan.looks):
        if made is not None and not is_last and is_promising(made.counts):
            break
        length_s = plan.length_s if made is None else made.length_s * factor_to_decide(made.counts, plan.error, LONGER)
        counts = tuple(look(rate, length_s))
        made = Probe(rate, judge(counts, plan.error), 1 if made is None else made.looks + 1, length_s, counts)
    return made
