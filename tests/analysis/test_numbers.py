from __future__ import annotations

import math

import pytest

from harness.analysis.numbers import (
    between,
    count,
    milliseconds,
    percent,
    short_tokens,
    tokens,
    whole_percent,
    with_unit,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0.00"),
        (0.0049, "<0.01"),
        (0.0051, "0.01"),
        (0.0149, "0.01"),
        (9.994, "9.99"),
        (12.34, "12.3"),
        (123.4, "123"),
        (12_345.6, "12,346"),
        (99_999.4, "99,999"),
        (99_999.6, "100 s"),
        (math.inf, "inf"),
    ],
)
def test_milliseconds(value: float | None, text: str) -> None:
    assert milliseconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (12.34, "12.3 ms"), (99_999.4, "99,999 ms"), (995_000.0, "995 s"), (math.inf, "inf")],
)
def test_a_time_with_its_unit_has_one(value: float | None, text: str) -> None:
    assert with_unit(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (12.34, 23.45, "12.3 to 23.4 ms"),
        (26.7712, 26.7798, "26.77 to 26.78 ms"),
        (26.8, 26.8, "26.8 to 26.8 ms"),
        (99_000.0, 995_000.0, "99,000 ms to 995 s"),
        (995_000.0, 995_200.0, "995.0 s to 995.2 s"),
    ],
)
def test_an_interval_has_the_digits_that_tell_its_ends_apart(low: float, high: float, text: str) -> None:
    assert between(low, high, with_unit) == text


def test_an_interval_of_shares_too() -> None:
    assert between(0.82412, 0.82437, percent) == "82.41 % to 82.44 %"
    assert between(0.0, 0.0002, percent) == "0.0 % to <0.1 %"
    assert between(0.9981, 0.99992, percent) == "99.8 % to >99.9 %"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0.0, "0.0 %"),
        (0.0002, "<0.1 %"),
        (0.4567, "45.7 %"),
        (0.9996, ">99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_share_is_only_zero_or_one_if_it_is_exactly_that(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_counts() -> None:
    assert (count(None), count(0), count(1_234_567)) == ("-", "0", "1,234,567")


def test_very_many_tokens_are_told_in_millions() -> None:
    assert (tokens(None), tokens(99_999_999), tokens(40_000_000_000)) == ("-", "99,999,999", "40,000.0 M")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (-140, "-140"),
        (999_999, "999,999"),
        (1_000_000, "1,000 k"),
        (-9_876_543, "-9,877 k"),
        (12_345_678, "12.3 M"),
        (123_456_789, "123.5 M"),
    ],
)
def test_tokens_are_short_where_columns_are_many(value: int | None, text: str) -> None:
    assert short_tokens(value) == text


def test_a_coverage_of_100_percent_means_all() -> None:
    assert (whole_percent(None), whole_percent(0.999), whole_percent(1.0)) == ("-", "99 %", "100 %")
