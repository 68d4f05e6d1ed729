from __future__ import annotations

from statistics import mean, median
from typing import Any

import pytest
from pydantic import TypeAdapter

from harness.workload.distribution import Draws, Length, LongestDraws, Pause

LENGTH: TypeAdapter[Any] = TypeAdapter(Length)
PAUSE: TypeAdapter[Any] = TypeAdapter(Pause)


def lengths(value: object, count: int = 2000) -> list[int]:
    draws, parsed = Draws(0, "test"), LENGTH.validate_python(value)
    return [draws.length("x", parsed) for _ in range(count)]


def pauses_s(value: object, count: int = 2000) -> list[float]:
    draws, parsed = Draws(0, "test"), PAUSE.validate_python(value)
    return [draws.pause_s("x", parsed) for _ in range(count)]


def test_a_plain_number_is_always_that_number() -> None:
    assert set(lengths(7)) == {7}
    assert set(pauses_s(0.5)) == {0.5}


def test_uniform_lengths_take_every_value_from_the_smallest_to_the_largest() -> None:
    drawn = lengths({"uniform": [3, 6]})
    assert set(drawn) == {3, 4, 5, 6}
    assert all(drawn.count(value) > 400 for value in (3, 4, 5, 6))


def test_lognormal_lengths_have_their_median_and_are_cut_at_both_ends() -> None:
    drawn = lengths({"lognormal": {"median": 100, "sigma": 1.0, "min": 40, "max": 300}})
    assert median(drawn) == pytest.approx(100, rel=0.1)
    assert min(drawn) == 40
    assert max(drawn) == 300


def test_a_lognormal_length_is_never_below_one() -> None:
    assert min(lengths({"lognormal": {"median": 1, "sigma": 3.0, "max": 10}})) == 1


def test_pauses_follow_their_distribution_and_its_cut() -> None:
    uniform = pauses_s({"uniform": [0.5, 1.5]})
    assert 0.5 <= min(uniform) < 0.6
    assert 1.4 < max(uniform) <= 1.5
    exponential = pauses_s({"exponential": {"mean": 2.0, "max": 1000.0}})
    assert mean(exponential) == pytest.approx(2.0, rel=0.1)
    assert max(pauses_s({"exponential": {"mean": 2.0, "max": 3.0}})) == 3.0


def test_what_one_purpose_draws_does_not_depend_on_what_others_drew() -> None:
    uniform = LENGTH.validate_python({"uniform": [1, 10**9]})
    alone, among_others = Draws(0, "session", 4), Draws(0, "session", 4)
    for _ in range(5):
        among_others.length("other", uniform)
    assert [alone.length("x", uniform) for _ in range(5)] == [among_others.length("x", uniform) for _ in range(5)]


def test_seed_thing_and_purpose_each_change_what_is_drawn() -> None:
    uniform = LENGTH.validate_python({"uniform": [1, 10**9]})
    drawn = {
        Draws(0, "session", 1).length("x", uniform),
        Draws(1, "session", 1).length("x", uniform),
        Draws(0, "session", 2).length("x", uniform),
        Draws(0, "document", 1).length("x", uniform),
        Draws(0, "session", 1).length("y", uniform),
    }
    assert len(drawn) == 5


def test_the_longest_draws_give_the_largest_values() -> None:
    longest = LongestDraws()
    assert longest.length("x", 7) == 7
    assert longest.length("x", LENGTH.validate_python({"uniform": [3, 6]})) == 6
    assert longest.length("x", LENGTH.validate_python({"lognormal": {"median": 5, "sigma": 1, "max": 90}})) == 90
    assert longest.pause_s("x", PAUSE.validate_python({"exponential": {"mean": 1, "max": 2.5}})) == 2.5
