"""The interval of a share, against published values."""

from __future__ import annotations

from math import sqrt

import pytest

from harness.statistics.wilson import wilson


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_are_those_of_newcombes_table(k: int, n: int, low: float, high: float) -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-5)


def test_its_ends_are_the_shares_that_are_just_so_many_errors_away() -> None:
    found = wilson(7, 40)
    assert found is not None
    for share in found:
        assert abs(7 / 40 - share) / sqrt(share * (1 - share) / 40) == pytest.approx(1.959964, abs=1e-6)


def test_none_and_all_have_a_width_and_nothing_seen_has_no_interval() -> None:
    low, high = wilson(0, 50) or (1, 1)
    assert low == 0
    assert high == pytest.approx(1.959964**2 / (50 + 1.959964**2))
    assert wilson(50, 50) == pytest.approx((1 - high, 1))
    assert wilson(0, 0) is None


def test_requests_that_depend_on_each_other_are_worth_fewer() -> None:
    assert wilson(20, 80, effect=4.0) == wilson(5, 20)
