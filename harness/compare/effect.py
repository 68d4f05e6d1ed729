"""By how much one side differs from the reference in one number, how sure that is, and what could have been seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.statistics.bootstrap import CONFIDENCE, Floats, Statistic, interval

Kind = Literal["ratio", "median ratio", "difference"]
Draws = tuple[Floats, Floats]
"""A block of draws: (draws, sessions) of the reference and of the other side, in step."""
Verdict = Literal["higher", "lower", "perhaps higher", "perhaps lower", "none", "unknown"]

_POWER_ERRORS = 0.8416
"""Standard errors beyond the limit at which 4 of 5 comparisons find a difference: the normal quantile of 0.8."""

_ROUNDING = 1e-12
BEYOND_CHANCE = 1.5
"""The variance that 30 stretches of time show, over that of many sessions, is beyond this in 1 of 20 cases if requests
of one time have nothing in common: the 95th percentile of chi-square with 29 degrees of freedom / 29 is 1.47."""


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
    """So many times as wide as sessions alone would have it is the interval, as requests of one moment depend on each
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


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a question came to, without its statistics: these hold all requests."""

    name: str
    kind: Kind
    requests: tuple[int, int]
    reason: str
    interval: bool
    counts: bool
    reference: float | None
    other: float | None
    point: float
    """The effect that was measured, as a logarithm of a ratio or a difference; nan: it cannot be told."""
    draws: Floats
    """The effect in every draw, widened."""
    error: float
    """The standard error of `draws`."""
    width: float
    """By which they are widened."""


def answer(question: Question, drawn: Iterable[Draws], sizes: tuple[int, int], others: Sequence[float] = ()) -> Answer:
    """`drawn`: blocks of draws of the reference and of the other side, in step, of as many sessions each as `sizes`
    says. `others`: of the same question by `standard_error`, from draws of something else than sessions."""
    ones = (np.ones((1, sizes[0])), np.ones((1, sizes[1])))
    point = float(_effect(question, *ones)[0])
    draws = _draws(question, drawn)
    error = _error(draws)
    width = _width(error, others)
    reference, other = (
        None if side is None or question.kind == "median ratio" else _known(side.of(one)[0])
        for side, one in zip((question.reference, question.other), ones, strict=True)
    )
    return Answer(
        name=question.name,
        kind=question.kind,
        requests=question.requests,
        reason=question.reason,
        interval=question.interval,
        counts=question.counts,
        reference=reference,
        other=other,
        point=point,
        draws=_wider(draws, point, width),
        error=width * error,
        width=width,
    )


def standard_error(question: Question, drawn: Iterable[Draws]) -> float:
    """By draws as `answer` takes them."""
    return _error(_draws(question, drawn))


def effects(answers: Sequence[Answer]) -> list[Effect]:
    """All lines of a comparison.

    The intervals are percentile intervals of the draws (Davison and Hinkley 1997, section 5.3.1). Lines are judged
    together by the largest deviation of all lines in a draw, each in its own standard errors (the single-step maxT
    method: Westfall and Young, Resampling-Based Multiple Testing, 1993), which minds that they depend on each other.
    """
    judged = [one for one in answers if one.counts and one.interval and np.isfinite(one.point) and one.error > 0]
    limit = 1.96
    if judged:
        deviations = [np.abs(one.draws - one.point) / one.error for one in judged]
        largest = np.nanmax(np.stack(deviations), axis=0)
        limit = max(limit, float(np.quantile(largest, CONFIDENCE)))
    return [_told(one, limit) for one in answers]


def _draws(question: Question, drawn: Iterable[Draws]) -> Floats:
    """Its effect in every draw."""
    return np.concatenate([_effect(question, ours, theirs) for ours, theirs in drawn])


def _width(error: float, others: Sequence[float]) -> float:
    """By how much a standard error grows if what others have beyond it is added to its variance: the manner of
    clustering in several ways (Cameron, Gelbach and Miller, J. of Business & Economic Statistics 29, 2011). What may be
    chance is not added."""
    ratios = [(other / error) ** 2 for other in others if error > 0 and np.isfinite(other)]
    return float(np.sqrt(1 + sum(ratio - 1 for ratio in ratios if ratio > BEYOND_CHANCE)))


def _wider(draws: Floats, point: float, width: float) -> Floats:
    return draws if width == 1 else point + width * (draws - point)


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


def _error(values: Floats) -> float:
    """The standard error; nan: some draws are infinite or cannot be told; 0: all are the same but for rounding."""
    if not np.isfinite(values).all():
        return float("nan")
    error = float(values.std())
    return error if error > _ROUNDING else 0.0


def _told(answer: Answer, limit: float) -> Effect:
    is_ratio = answer.kind != "difference"
    is_known = not np.isnan(answer.point)
    has_interval = answer.interval and is_known
    low, high = interval(answer.draws) if has_interval else (None, None)
    as_shown = np.exp if is_ratio else float
    detectable = None
    if has_interval and answer.error > 0:
        reach = (limit + _POWER_ERRORS) * answer.error
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
        verdict=_verdict(answer.point, low, high, answer.error, limit),
        detectable=detectable,
        reason=answer.reason or ("" if is_known else "both sides are infinite, or nothing tells it"),
        widened=answer.width,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _verdict(point: float, low: float | None, high: float | None, error: float, limit: float) -> Verdict:
    if low is None or high is None:
        return "unknown"
    if low <= 0 <= high or point == 0:
        return "none"
    way: Literal["higher", "lower"] = "higher" if point > 0 else "lower"
    # Without any spread, or next to infinity, there are no standard errors: all draws say the same.
    if np.isnan(error) or error == 0 or abs(point) > limit * error:
        return way
    return "perhaps higher" if way == "higher" else "perhaps lower"
