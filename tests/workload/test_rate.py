"""The rate of an open loop: how it is written, and when how many sessions are due by it."""

from __future__ import annotations

import math

import pytest

from harness.errors import InputError
from harness.workload.rate import parse_rate


@pytest.mark.parametrize(
    ("text", "passed_s", "count"),
    [
        ("2", 10, 20),
        (".5", 10, 5),
        ("10s:2, 20s:0, 10s:4", 10, 20),
        ("10s:2, 20s:0, 10s:4", 25, 20),
        ("10s:2, 20s:0, 10s:4", 40, 60),
        ("10s:2, 20s:0, 10s:4", 1000, 60),  # nothing arrives after the last stage
        ("1m:0-20, 20", 30, 150),  # half the time: a quarter of the triangle of 600
        ("1m:0-20, 20", 60, 600),
        ("1m:0-20, 20", 61, 620),
        ("10s:4-2", 5, 17.5),  # 4 falls to 3 in 5 s: 3.5 on the mean
        ("1m30s:1,1h:0,2", 3690 + 5, 100),
    ],
)
def test_how_many_are_due_is_the_area_under_the_rate(text: str, passed_s: float, count: float) -> None:
    assert parse_rate(text).count(passed_s) == pytest.approx(count)


@pytest.mark.parametrize("text", ["2", "10s:2,20s:0,10s:4", "1m:0-20,20", "10s:20-0,5s:0-3,1", "7s:1-9,5s:9-2"])
def test_the_time_of_a_count_is_the_inverse(text: str) -> None:
    rate = parse_rate(text)
    for count in (0.0, 0.01, 1, 7.5, 19.9, 20.5, 35):
        time_s = rate.time_s(count)
        assert time_s is not None
        assert rate.count(time_s) == pytest.approx(count, abs=1e-9)


def test_nothing_is_due_in_a_pause_or_after_the_end() -> None:
    rate = parse_rate("10s:2,20s:0,10s:4")
    assert rate.time_s(19.999) == pytest.approx(9.9995)
    assert rate.time_s(20) == 30  # the pause is over
    assert rate.time_s(60) is None
    assert parse_rate("10s:1,0").time_s(10) is None
    assert (rate.length_s, parse_rate("2").length_s) == (40, math.inf)


def test_it_is_shown_as_it_was_given() -> None:
    assert str(parse_rate(" 30s:2, 20 ")) == "30s:2, 20"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fast", ["'fast'", "a number such as 2", "30s:2"]),
        ("", ["cannot be read"]),
        ("-2", ["'-2'"]),
        ("0", ["no session would ever arrive"]),
        ("10s:0,5s:0-0", ["no session would ever arrive"]),
        ("2,3", ["'2'", "needs a length", "30s:2"]),
        ("2-20", ["'2-20'", "needs a length"]),
        ("0s:2,3", ["'0s:2'", "no length"]),
        ("10s:2,", ["''"]),
        ("10:2", ["'10:2'"]),
        ("1e3", ["'1e3'"]),
        ("nan", ["'nan'"]),
    ],
)
def test_a_rate_that_cannot_be_is_named(text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        parse_rate(text)
    assert all(word in str(error.value) for word in words), error.value
