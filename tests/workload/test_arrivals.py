"""When sessions arrive: by the distribution that was asked for, and always the same for one seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice, pairwise
from statistics import fmean, pstdev

import pytest

from harness.errors import InputError
from harness.workload.arrivals import arrival_times_s, parse_arrivals
from harness.workload.rate import parse_rate
from tests.workload.gaps import CRITICAL, distance, exponential, gamma

N = 20_000


def times_s(arrivals: str, rate: str, n: int = N, seed: int = 1) -> list[float]:
    return list(islice(arrival_times_s(parse_arrivals(arrivals), parse_rate(rate), seed), n))


def gaps_s(arrivals: str, rate: str) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times_s(arrivals, rate))]


@pytest.mark.parametrize(
    ("arrivals", "cv", "cumulative"),
    [
        ("poisson", 1.0, exponential(5.0)),
        ("gamma:3", 3.0, gamma(1 / 9, 5.0)),
        ("gamma:0.5", 0.5, gamma(4.0, 5.0)),
        ("gamma:1", 1.0, exponential(5.0)),
    ],
)
def test_gaps_are_distributed_as_asked_for(arrivals: str, cv: float, cumulative: Callable[[float], float]) -> None:
    gaps = gaps_s(arrivals, "5")
    mean = fmean(gaps)
    assert mean == pytest.approx(0.2, rel=4 * cv / math.sqrt(N))
    # A sample's own deviation varies by sqrt((kurtosis - 1) / 4 n) of it; the gamma's kurtosis is 3 + 6 CV².
    assert pstdev(gaps) / mean == pytest.approx(cv, rel=4 * math.sqrt((2 + 6 * cv * cv) / (4 * N)))
    assert distance(gaps, cumulative, finest=1e-6) < CRITICAL


def test_the_test_of_the_gaps_tells_other_distributions_apart() -> None:
    assert distance(gaps_s("gamma:0.9", "5"), exponential(5.0)) > CRITICAL
    assert distance(gaps_s("poisson", "5"), exponential(5.2)) > CRITICAL
    assert distance(gaps_s("poisson", "5"), gamma(1 / 1.1**2, 5.0)) > CRITICAL


def test_constant_arrivals_have_equal_gaps_and_begin_at_once() -> None:
    assert times_s("constant", "4", 5) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert times_s("constant", "1s:2,1s:0,2s:1", 9) == [0.0, 0.5, 2.0, 3.0]  # four are due, and that is all


@pytest.mark.parametrize("arrivals", ["poisson", "gamma:3"])
def test_where_the_rate_changes_arrivals_are_even_in_what_is_due(arrivals: str) -> None:
    rate = parse_rate("100s:0-200,50s:20,200")
    counts = [rate.count(time_s) for time_s in times_s(arrivals, rate.text)]
    gaps = [later - earlier for earlier, later in pairwise(counts)]
    cumulative = exponential(1.0) if arrivals == "poisson" else gamma(1 / 9, 1.0)
    assert distance(gaps, cumulative, finest=1e-6) < CRITICAL
    # 10,000 due in the rise and 1,000 in the next stage, give or take four deviations.
    within = sum(time_s < 100 for time_s in times_s(arrivals, rate.text))
    assert within == pytest.approx(10_000, abs=4 * 3 * 100)


@pytest.mark.parametrize("arrivals", ["gamma:4", "gamma:0.3", "poisson"])
def test_no_more_and_no_fewer_arrive_at_first_than_later(arrivals: str) -> None:
    """In the first second of a rate of 1. After a first gap like any other it would be 5.3 for gamma:4."""
    counts = [sum(time_s < 1.0 for time_s in times_s(arrivals, "1", 40, seed)) for seed in range(1500)]
    assert fmean(counts) == pytest.approx(1.0, abs=4 * pstdev(counts) / math.sqrt(1500))


def test_a_seed_has_its_own_arrivals_and_always_the_same() -> None:
    assert times_s("poisson", "2", 50) == times_s("poisson", "2", 50)
    assert times_s("poisson", "2", 50) != times_s("poisson", "2", 50, seed=2)
    # Another rate is the same process at another speed.
    assert times_s("gamma:3", "4", 50) == pytest.approx([time_s / 2 for time_s in times_s("gamma:3", "2", 50)])


@pytest.mark.parametrize("text", ["poisson", "constant", "trace", "gamma:3", "gamma:0.25"])
def test_arrivals_are_shown_as_they_are_given(text: str) -> None:
    assert str(parse_arrivals(f" {text} ")) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bursty", ["'bursty'", "poisson, constant, trace", "gamma:3"]),
        ("gamma", ["'gamma'", "gamma:CV"]),
        ("gamma:0", ["'gamma:0'", "0.05 to 20"]),
        ("gamma:21", ["0.05 to 20"]),
        ("gamma:-1", ["'gamma:-1'"]),
        ("", ["''"]),
    ],
)
def test_arrivals_that_cannot_be_are_named(text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        parse_arrivals(text)
    assert all(word in str(error.value) for word in words), error.value
