"""By how much one side differs from the reference in one number, how sure that is, and what could have been seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from harness.statistics.bootstrap import CONFIDENCE, Floats, Statistic
from harness.statistics.moments import Spread, spread

Kind = Literal["ratio", "median ratio", "difference"]
Verdict = Literal["higher", "lower", "perhaps higher", "perhaps lower", "none", "unknown"]

_POWER_ERRORS = 0.8416
"""Standard errors beyond the limit at which 4 of 5 comparisons find a difference: the normal quantile of 0.8."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of a comparison. None: not known, and `reason` says why."""

    name: str
    """As gates call it: ttft_p50_ratio, hit_rate_diff."""
    kind: Kind
    """ratio: of the other side to the reference; median ratio: the median over requests of this ratio; difference: the
    other side minus the reference."""
    requests: tuple[int, int]
    """Of the reference and of the other side."""
    reference: float | None
    """In ms, or as a share; None also: a median ratio has no sides. So has the next."""
    other: float | None
    effect: float | None
    low: float | None
    """The interval holds the true value with `CONFIDENCE`, this line taken by itself."""
    high: float | None
    verdict: Verdict
    """higher and lower hold with `CONFIDENCE` for all lines together; perhaps: the interval of this line alone says so,
    and as there are many lines one may by chance; none: no difference was found."""
    detectable: float | None
    """Smallest difference that 4 of 5 such comparisons would have found, as `effect` minus 1 or 0."""
    reason: str = ""
    widened: float = 1.0
    """So many times as large as sessions alone have it is the standard error, as requests of one moment depend on each
    other, too."""


@dataclass(frozen=True, slots=True)
class Question:
    """What an effect is calculated from."""

    name: str
    kind: Kind
    requests: tuple[int, int]
    reference: Statistic | None
    """None: it cannot be told, and `reason` says why; the next too. A median ratio has no reference of its own."""
    other: Statistic | None
    reason: str = ""
    interval: bool = True
    """There are enough sessions and requests for one; else `reason` says what there is too little of."""
    counts: bool = True
    """It is one of the lines that are judged together; False: another view of one of them."""
    least: tuple[float, float] | None = None
    """What the interval holds at least, for a difference that may be the same in all draws and yet is not sure."""


Drawn = Iterable[tuple[Floats, Floats]]
"""Blocks of draws of the reference and of the other side, in step."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a question came to, without its statistics: these hold all requests."""

    name: str
    kind: Kind
    requests: tuple[int, int]
    reason: str
    interval: bool
    counts: bool
    least: tuple[float, float] | None
    reference: float | None
    other: float | None
    point: float
    """The effect that was measured, as a logarithm of a ratio or a difference; nan: it cannot be told."""
    varied: Spread
    """How it varies over draws."""


def answer(
    question: Question, drawn: Drawn, sizes: tuple[int, int], by_time: Sequence[tuple[Question, Drawn]] = ()
) -> Answer:
    """`drawn`: of as many sessions each as `sizes` says; `by_time`: by each clock the same question, of stretches of
    time, and draws of those. A question that has no interval by one of the clocks has none."""
    ones = (np.ones((1, sizes[0])), np.ones((1, sizes[1])))
    point = float(_effect(question, *ones)[0])
    reference, other = (
        None if side is None or question.kind == "median ratio" else _known(side.of(one)[0])
        for side, one in zip((question.reference, question.other), ones, strict=True)
    )
    without = next((asked.reason for asked, _ in by_time if not asked.interval), None)
    has_interval = question.interval and without is None
    return Answer(
        name=question.name,
        kind=question.kind,
        requests=question.requests,
        reason=question.reason if has_interval or not question.interval else without or "",
        interval=has_interval,
        counts=question.counts,
        least=question.least,
        reference=reference,
        other=other,
        point=point,
        varied=spread(point, _draws(question, drawn), [_draws(asked, blocks) for asked, blocks in by_time]),
    )


def effects(answers: Sequence[Answer]) -> list[Effect]:
    """All lines of a comparison.

    The intervals are percentile intervals of the draws (Davison and Hinkley 1997, section 5.3.1). Lines are judged
    together by the largest deviation of all lines in a draw, each in its own standard errors (the single-step maxT
    method: Westfall and Young, Resampling-Based Multiple Testing, 1993), which minds that they depend on each other.
    """
    judged = [one for one in answers if one.counts and one.interval and np.isfinite(one.point) and one.varied.error > 0]
    limit = 1.96
    if judged:
        deviations = [np.abs(one.varied.draws - one.point) / one.varied.error for one in judged]
        largest = np.nanmax(np.stack(deviations), axis=0)
        limit = max(limit, float(np.quantile(largest, CONFIDENCE)))
    return [_told(one, limit) for one in answers]


def _draws(question: Question, drawn: Drawn) -> Floats:
    """Its effect in every draw."""
    return np.concatenate([_effect(question, ours, theirs) for ours, theirs in drawn])


def _effect(question: Question, ours: Floats, theirs: Floats) -> Floats:
    """The logarithm of the ratio, or the difference; nan where it cannot be told, as of inf against inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if question.other is None:
            return np.full(len(ours), np.nan)
        other = question.other.of(theirs)
        if question.kind == "median ratio":
            return np.log(other)
        if question.reference is None:
            return np.full(len(ours), np.nan)
        reference = question.reference.of(ours)
        return other - reference if question.kind == "difference" else np.log(other) - np.log(reference)


def _told(answer: Answer, limit: float) -> Effect:
    is_ratio = answer.kind != "difference"
    is_known = not np.isnan(answer.point)
    has_interval = answer.interval and is_known
    low, high = answer.varied.interval() if has_interval else (None, None)
    if low is not None and high is not None and answer.least is not None:
        low, high = min(low, answer.least[0]), max(high, answer.least[1])
    as_shown = np.exp if is_ratio else float
    detectable = None
    if has_interval and answer.varied.error > 0:
        reach = (limit + _POWER_ERRORS) * answer.varied.error
        detectable = float(np.expm1(reach)) if is_ratio else reach
    return Effect(
        name=answer.name,
        kind=answer.kind,
        requests=answer.requests,
        reference=answer.reference,
        other=answer.other,
        effect=float(as_shown(answer.point)) if is_known else None,
        low=None if low is None else float(as_shown(low)),
        high=None if high is None else float(as_shown(high)),
        verdict=_verdict(answer.point, low, high, answer.varied, limit),
        detectable=detectable,
        reason=answer.reason or ("" if is_known else "both sides are infinite, or nothing tells it"),
        widened=answer.varied.widened,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _verdict(point: float, low: float | None, high: float | None, varied: Spread, limit: float) -> Verdict:
    if low is None or high is None:
        return "unknown"
    if low <= 0 <= high or point == 0:
        return "none"
    way: Literal["higher", "lower"] = "higher" if point > 0 else "lower"
    if _is_beyond(point, varied, limit):
        return way
    return "perhaps higher" if way == "higher" else "perhaps lower"


def _is_beyond(point: float, varied: Spread, limit: float) -> bool:
    """Whether an effect is further off than `limit` standard errors. Next to infinity there are none: then an interval
    that is as sure as so many has to say so."""
    if np.isfinite(varied.error):
        return abs(point) > limit * varied.error
    low, high = varied.interval(2 * NormalDist().cdf(limit) - 1)
    return not low <= 0 <= high
