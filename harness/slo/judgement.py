"""Whether a load meets an objective, by what was counted of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

from harness.slo.objective import Limit
from harness.statistics.binomial import chance_at_least, chance_at_most, lower_bound, upper_bound

Verdict = Literal["met", "not met", "undecided"]


@dataclass(frozen=True, slots=True)
class Count:
    """The requests of a probe, held against one limit."""

    limit: Limit
    beyond: int
    of: int
    """Requests of which it is known whether they are beyond."""
    effect: float = 1.0
    """So many of them are worth one independent request: their design effect."""

    @property
    def worth(self) -> int:
        """Independent requests that `of` are worth (Korn and Graubard, Survey Methodology 24, 1998), rounded down."""
        return floor(self.of / self.effect)

    def times(self, factor: float) -> Count:
        """What a probe that is `factor` times as long would count if all went on as it is."""
        return Count(self.limit, round(self.beyond * factor), round(self.of * factor), self.effect)

    def judge(self, error: float) -> Verdict:
        """By the exact binomial test, each side with a chance of at most `error` to be wrong.

        Met: were the share that is allowed beyond the limit, or more, so few would be seen with at most that chance.
        Not met: were it less, so many would.
        """
        fewest, most = floor(self.beyond / self.effect), min(self.worth, ceil(self.beyond / self.effect))
        if chance_at_most(most, self.worth, self.limit.allowed) <= error:
            return "met"
        if fewest and chance_at_least(fewest, self.worth, self.limit.allowed) <= error:
            return "not met"
        return "undecided"

    def share(self, error: float) -> tuple[float, float]:
        """Between which the share that is beyond lies; each bound is wrong with a chance of at most `error`."""
        fewest, most = floor(self.beyond / self.effect), min(self.worth, ceil(self.beyond / self.effect))
        return lower_bound(fewest, self.worth, error), upper_bound(most, self.worth, error)


def judge(counts: Sequence[Count], error: float) -> Verdict:
    """Met if every limit is, not met if one is not; either is wrong with a chance of at most `error`.

    All limits have to be met, so a wrong "met" takes a wrong one of a certain limit: each may err with `error`. One
    that is not met is enough, so there the chances add up, and each limit may err with its part (Bonferroni).
    """
    if all(count.judge(error) == "met" for count in counts):
        return "met"
    if any(count.judge(error / len(counts)) == "not met" for count in counts):
        return "not met"
    return "undecided"


def is_promising(counts: Sequence[Count]) -> bool:
    """Whether of each limit less than the allowed share is beyond, be it by chance or not."""
    return all(count.beyond < count.limit.allowed * count.of for count in counts)


def factor_to_decide(counts: Sequence[Count], error: float, factors: Sequence[float]) -> float:
    """The first of `factors` by which a longer probe would be decided if all went on as it is; else the last."""
    for factor in factors:
        if judge([count.times(factor) for count in counts], error) != "undecided":
            return factor
    return factors[-1]
