"""By how much one side differs from the reference in one number, how sure that is, and what could have been seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from harness.statistics.bootstrap import CONFIDENCE, Floats, Statistic, interval

Kind = Literal["ratio", "median ratio", "difference"]
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


def effects(
    questions: Sequence[Question],
    drawn: Iterable[tuple[Floats, Floats]],
    sessions: tuple[int, int],
    other_errors: Sequence[Sequence[float]] = (),
) -> list[Effect]:
    """`drawn`: blocks of draws of the reference and of the other side, in step, of as many `sessions` each.
    `other_errors`: of the same questions by `standard_errors`, from draws of something else than sessions.

    The intervals are percentile intervals of the draws (Davison and Hinkley 1997, section 5.3.1). Lines are judged
    together by the largest deviation of all lines in a draw, each in its own standard errors (the single-step maxT
    method: Westfall and Young, Resampling-Based Multiple Testing, 1993), which minds that they depend on each other.
    """
    ones = (np.ones((1, sessions[0])), np.ones((1, sessions[1])))
    points = [float(_effect(question, *ones)[0]) for question in questions]
    found = _draws(questions, drawn)
    errors = [_error(values) for values in found]
    widths = [_width(errors[number], [of_all[number] for of_all in other_errors]) for number in range(len(questions))]
    found = [_wider(draws, point, width) for draws, point, width in zip(found, points, widths, strict=True)]
    errors = [width * error for width, error in zip(widths, errors, strict=True)]
    judged = [
        number
        for number, question in enumerate(questions)
        if question.counts and question.interval and np.isfinite(points[number]) and errors[number] > 0
    ]
    limit = 1.96
    if judged:
        deviations = [np.abs(found[number] - points[number]) / errors[number] for number in judged]
        largest = np.nanmax(np.stack(deviations), axis=0)
        limit = max(limit, float(np.quantile(largest, CONFIDENCE)))
    values = zip(questions, points, found, errors, widths, strict=True)
    return [
        replace(_told(question, point, draws, error, limit, ones), widened=width)
        for question, point, draws, error, width in values
    ]


def standard_errors(questions: Sequence[Question], drawn: Iterable[tuple[Floats, Floats]]) -> list[float]:
    """Of each of them, by draws as `effects` takes them."""
    return [_error(values) for values in _draws(questions, drawn)]


def _draws(questions: Sequence[Question], drawn: Iterable[tuple[Floats, Floats]]) -> list[Floats]:
    """Of each question its effect in every draw."""
    blocks = [[_effect(question, ours, theirs) for question in questions] for ours, theirs in drawn]
    return [np.concatenate([block[number] for block in blocks]) for number in range(len(questions))]


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


def _told(
    question: Question, point: float, draws: Floats, error: float, limit: float, ones: tuple[Floats, Floats]
) -> Effect:
    is_ratio = question.kind != "difference"
    reference, other = (
        None if side is None or question.kind == "median ratio" else _known(side.of(one)[0])
        for side, one in zip((question.reference, question.other), ones, strict=True)
    )
    has_interval = question.interval and not np.isnan(point)
    low, high = interval(draws) if has_interval else (None, None)
    as_shown = np.exp if is_ratio else float
    detectable = None
    if has_interval and error > 0:
        reach = (limit + _POWER_ERRORS) * error
        detectable = float(np.expm1(reach)) if is_ratio else reach
    return Effect(
        name=question.name,
        kind=question.kind,
        requests=question.requests,
        reference=reference,
        other=other,
        effect=None if np.isnan(point) else float(as_shown(point)),
        low=None if low is None else float(as_shown(low)),
        high=None if high is None else float(as_shown(high)),
        verdict=_verdict(point, low, high, error, limit),
        detectable=detectable,
        reason=question.reason or ("both sides are infinite, or nothing tells it" if np.isnan(point) else ""),
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
