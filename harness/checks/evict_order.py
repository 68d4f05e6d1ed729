"""Which prompt a full cache gives up first: the one that was asked for longest ago, or the one that came first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.checks.evict_search import PRECISION, WHOLE, Trials
from harness.checks.sight import Sight

Order = Literal["least-recently-used", "first-in-first-out", "newest-first", "neither"]

GROUP_SHARE = 0.125
"""Of the capacity, what each of the two groups of prompts takes."""
NEARLY = 0.9
"""Of the capacity, what is filled before the first group is asked for again."""
OVER_SHARE = 0.75
"""Of a group, what is sent too much at last: one group is lost then, at least in part, and the other one is not."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Lengths of the prompts of a trial, in tokens."""

    group: list[int]
    """Of each of two groups, A and B, sent one after the other."""
    before: list[int]
    """Sent then, until the cache is nearly full; A is asked for again after them."""
    after: list[int]
    """Sent at last."""


def by_number(conversations: int, tokens: int, trials: Trials) -> Filling | None:
    """For a cache of so many prompts, each of `tokens`; None: with one alone there is no order."""
    each = trials.lengths(tokens, tokens)
    return Filling(each, each * (conversations - 2), each) if conversations >= 2 else None


def by_tokens(capacity_tokens: int, longest: int, trials: Trials) -> Filling | None:
    """For a cache of so many tokens, in prompts of up to `longest`; None: it has too few blocks to fill it nearly."""
    group = round(GROUP_SHARE * capacity_tokens)
    if OVER_SHARE * group < PRECISION * capacity_tokens + 3 * trials.grain_tokens:  # each part is rounded to blocks
        return None
    before = round(NEARLY * capacity_tokens) - 2 * group
    after = round((1 - NEARLY) * capacity_tokens + OVER_SHARE * group)
    return Filling(*(trials.lengths(tokens, longest) for tokens in (group, before, after)))


def order_of(trials: Trials, filling: Filling, sight: Sight) -> tuple[Order, tuple[float, float]]:
    """What is lost first, and what was held in the end of A's and of B's first prompt (0 to 1).

    Each is asked for in a trial of its own, as what is not there is stored again and drives out others.
    `sight`: how a hit shows in prompts as long as the first of a group.
    """
    tokens = filling.group[0]
    kept: list[float] = []
    for asked in ("a", "b"):
        trial = trials.begin()
        for group in ("a", "b"):
            for number, length in enumerate(filling.group):
                trial.first(f"{group}/{number}", length)
        trial.fill(filling.before)
        for number, length in enumerate(filling.group):
            trial.first(f"a/{number}", length)
        trial.fill(filling.after)
        kept.append(trial.first(f"{asked}/0", tokens, sight))
    again, once = kept
    return named(again, once), (again, once)


def named(again: float, once: float) -> Order:
    """By what was held of a prompt that was asked for again, and of one that was sent once and after it."""
    if again >= WHOLE:
        return "newest-first" if once >= WHOLE else "least-recently-used"
    return "first-in-first-out" if once >= WHOLE else "neither"
