"""Medians and their intervals: by hand, and by trying all outcomes."""

from __future__ import annotations

from itertools import product

import pytest

from harness.checks.prove_statistics import WANTED, chance_of, median_interval, spread


def test_five_values_have_their_range_as_interval() -> None:
    found = median_interval([0.3, 0.1, 0.2, 0.5, 0.4])
    assert (found.median, found.low, found.high, found.n) == (0.3, 0.1, 0.5, 5)
    assert found.confidence == 1 - 2 / 32


def test_eight_values_do_without_the_outermost_ones() -> None:
    """With 7 of 8 on one side in 8 of 256 cases, and 8 in one: 1 - 2 * 9 / 256 = 0.93."""
    found = median_interval([float(value) for value in range(1, 9)])
    assert (found.median, found.low, found.high) == (4.5, 2.0, 7.0)
    assert found.confidence == 1 - 2 * 9 / 256


@pytest.mark.parametrize("n", range(1, 5))
def test_fewer_than_five_values_are_not_enough(n: int) -> None:
    found = median_interval([float(value) for value in range(n)])
    assert (found.low, found.high) == (0.0, n - 1)
    assert found.confidence < WANTED


@pytest.mark.parametrize("n", range(5, 13))
def test_the_confidence_is_what_trying_all_outcomes_gives(n: int) -> None:
    """Each value lies below the true median or above it: all 2^n ways are equally probable."""
    found = median_interval([float(value) for value in range(n)])
    k = int(found.low) + 1
    inside = sum(k <= sum(below) <= n - k for below in product((0, 1), repeat=n))
    assert found.confidence == pytest.approx(inside / 2**n)
    assert found.confidence >= WANTED


def test_a_median_needs_values() -> None:
    with pytest.raises(ValueError, match="needs values"):
        median_interval([])


def test_chance_that_so_many_pairs_go_one_way() -> None:
    assert chance_of(5, 5) == 1 / 32
    assert chance_of(4, 5) == 6 / 32
    assert chance_of(0, 5) == 1


def test_spread_is_that_of_most_values_whatever_one_of_them_does() -> None:
    """Distances to the median 3 are 2, 1, 0, 1, 997; their median is 1."""
    assert spread([1, 2, 3, 4, 1000]) == pytest.approx(2 * 1.4826)
