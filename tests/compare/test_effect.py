"""Intervals and verdicts, of draws that are written down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from harness.compare.effect import Effect, Question, answer, effects
from harness.statistics.bootstrap import Floats

ONES = np.ones((1, 1))


class Written:
    """A statistic that says `measured` of what was measured, and of draws what is written down."""

    def __init__(self, measured: float, draws: Floats) -> None:
        self._measured, self._draws = measured, draws

    def of(self, counts: Floats) -> Floats:
        return np.array([self._measured]) if counts is not BLOCK else self._draws


BLOCK = np.zeros((1001, 1))
STEPS = np.linspace(-1, 1, 1001)
"""Their 2.5th percentile is -0.95, their standard deviation 0.577."""


def asked(*questions: Question, by_time: Sequence[Question] = ()) -> list[Effect]:
    clocks = [(one, [(BLOCK, BLOCK)]) for one in by_time]
    return effects([answer(one, [(BLOCK, BLOCK)], (1, 1), clocks) for one in questions])


def told(*differences: Floats, measured: float = 0.0, **changes: object) -> list[Effect]:
    """Of lines whose reference is 1 in every draw."""
    nothing = Written(1.0, np.ones(1001))
    questions = [
        Question("x_diff", "difference", (5, 6), nothing, Written(1 + measured, 1 + of_draws), **changes)  # type: ignore[arg-type]
        for of_draws in differences
    ]
    return asked(*questions)


def test_an_interval_is_between_percentiles_of_the_draws() -> None:
    (effect,) = told(0.2 + STEPS, measured=0.2)

    assert (effect.reference, effect.other, effect.requests) == (1.0, 1.2, (5, 6))
    assert (effect.effect, effect.low, effect.high) == pytest.approx((0.2, -0.75, 1.15))
    assert effect.verdict == "none"
    # 1.96 standard errors, and 0.84 more so that 4 of 5 are beyond.
    assert effect.detectable == pytest.approx((1.96 + 0.8416) * STEPS.std())


def test_a_ratio_is_judged_by_its_logarithm() -> None:
    ours, theirs = Written(100.0, np.full(1001, 100.0)), Written(150.0, 150 * np.exp(0.1 * STEPS))
    (effect,) = asked(Question("r", "ratio", (1, 1), ours, theirs))

    numbers = (effect.effect, effect.low, effect.high)
    assert numbers == pytest.approx((1.5, 1.5 * np.exp(-0.095), 1.5 * np.exp(0.095)))
    assert effect.verdict == "higher"
    assert effect.detectable == pytest.approx(np.expm1((1.96 + 0.8416) * 0.1 * STEPS.std()))


def test_of_many_lines_one_alone_may_say_so_by_chance() -> None:
    # Lines that do not depend on each other: the largest of 24 deviations is beyond 1.96 errors in most draws.
    generator = np.random.default_rng(3)
    lines = [generator.normal(0, 1, 1001) for _ in range(24)]
    alone, of_many = told(lines[0] + 2.2, measured=2.2), told(*(line + 2.2 for line in lines), measured=2.2)
    sure = told(*(line + 5 for line in lines), measured=5.0)

    assert alone[0].verdict == "higher"
    assert of_many[0].verdict == "perhaps higher"
    assert sure[0].verdict == "higher"
    assert told(-5 - lines[0], measured=-5.0)[0].verdict == "lower"
    assert (of_many[0].detectable or 0) > (alone[0].detectable or 0)


def test_lines_that_say_the_same_count_once() -> None:
    line = np.random.default_rng(3).normal(0, 1, 1001) + 2.2

    assert {effect.verdict for effect in told(*[line] * 24, measured=2.2)} == {"higher"}


def test_a_line_that_never_varies_is_sure() -> None:
    (same,), (other,) = told(np.zeros(1001)), told(np.full(1001, 0.25), measured=0.25)

    assert (same.effect, same.low, same.high, same.verdict, same.detectable) == (0.0, 0.0, 0.0, "none", None)
    assert (other.verdict, other.detectable) == ("higher", None)


def test_what_has_no_interval_or_no_number_is_not_known() -> None:
    (few,) = told(STEPS + 9, measured=9.0, interval=False, reason="3 sessions are too few")
    assert (few.effect, few.low, few.verdict, few.reason) == (9.0, None, "unknown", "3 sessions are too few")

    silent = Question("r", "ratio", (0, 5), None, Written(1.0, STEPS), reason="nobody has it")
    (unknown,) = asked(silent)
    assert (unknown.reference, unknown.other, unknown.effect, unknown.verdict) == (None, 1.0, None, "unknown")
    assert unknown.reason == "nobody has it"


def test_infinity_in_some_draws_widens_the_interval_and_in_all_of_them_is_sure() -> None:
    ours = Written(100.0, np.full(1001, 100.0))
    some = np.where(np.arange(1001) < 100, np.inf, 110.0)
    questions = [
        Question("some", "ratio", (1, 1), ours, Written(110.0, some)),
        Question("all", "ratio", (1, 1), ours, Written(np.inf, np.full(1001, np.inf))),
        Question("both", "ratio", (1, 1), Written(np.inf, some), Written(np.inf, np.full(1001, np.inf))),
    ]
    some_of_them, all_of_them, both = asked(*questions)

    assert some_of_them.low == pytest.approx(1.1)
    assert some_of_them.high == np.inf
    assert (all_of_them.effect, all_of_them.low, all_of_them.verdict) == (np.inf, np.inf, "higher")
    assert (both.effect, both.verdict, both.reason) == (None, "unknown", "both sides are infinite, or nothing tells it")


def held(*by_time: Floats, enough: bool = True) -> Effect:
    """Of a difference of 1 that varies by `STEPS` over sessions, and over time as these have it."""
    nothing = Written(1.0, np.ones(1001))
    clocks = [
        Question("x_diff", "difference", (5, 6), nothing, Written(2.0, 1 + draws), "too few moments", enough)
        for draws in by_time
    ]
    question = Question("x_diff", "difference", (5, 6), nothing, Written(2.0, 2.0 + STEPS))
    return asked(question, by_time=clocks)[0]


def test_what_time_adds_to_the_variance_widens_the_interval_unless_it_may_be_chance() -> None:
    # Variances of 4 and 3 times that of sessions: 1 + 3 + 2 of it.
    both = held(1 + 2 * STEPS, 1 + 3**0.5 * STEPS)
    assert both.widened == pytest.approx(6**0.5)
    assert (both.low, both.high) == pytest.approx((1 - 6**0.5 * 0.95, 1 + 6**0.5 * 0.95))
    assert both.detectable == pytest.approx((1.96 + 0.8416) * 6**0.5 * float(STEPS.std()))
    assert (both.verdict, held().verdict) == ("none", "perhaps higher")
    for others in ((1 + 1.2 * STEPS,), (1 + 0.1 * STEPS,), ()):
        assert held(*others).widened == 1


def test_an_interval_reaches_as_far_as_the_draws_of_time_do() -> None:
    # In a tenth of the draws of time the moment is not there, and all that it made slow is as fast as the rest.
    without = np.where(np.arange(1001) % 10 == 0, -4.0, 1.0)
    assert held(without).low == -4.0
    assert held(without).high == pytest.approx(1 + held(without).widened * 0.95)
    infinite = np.where(np.arange(1001) % 10 == 0, np.inf, 1.0)
    assert (held(infinite).low, held(infinite).high) == pytest.approx((0.05, np.inf))


def test_what_time_cannot_tell_is_not_known() -> None:
    few = held(1 + STEPS, enough=False)
    assert (few.effect, few.low, few.verdict, few.reason) == (1.0, None, "unknown", "too few moments")
    silent = held(np.where(np.arange(1001) % 10 == 0, np.nan, 1.0))
    assert (silent.low, silent.high, silent.verdict) == (-np.inf, np.inf, "none")


def test_next_to_infinity_a_line_is_judged_with_the_others_too() -> None:
    """No standard error tells it, so its interval has to be as sure as all lines together want it."""
    luck = np.random.default_rng(5).normal(0, 1, (24, 1001))
    some = np.where(np.arange(1001) < 100, np.inf, 2.2 + luck[0])
    ordinary = [
        Question(f"x{n}_diff", "difference", (5, 6), Written(0, np.zeros(1001)), Written(0, line))
        for n, line in enumerate(luck)
    ]
    failing = Question("y_diff", "difference", (5, 6), Written(0, np.zeros(1001)), Written(2.2, some), counts=False)
    (alone,), (*_, of_many) = asked(failing), asked(*ordinary, failing)

    assert alone.verdict == "higher"
    assert of_many.verdict == "perhaps higher"
