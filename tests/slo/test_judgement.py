"""When a count decides: exact binomial chances, requests that come in bunches, several limits."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import pytest

from harness.slo.judgement import Count, factor_to_decide, judge
from harness.slo.objective import parse_slo
from harness.statistics.binomial import chance_at_least, chance_at_most, lower_bound, upper_bound
from harness.statistics.bunching import design_effect, of_sessions

P99, P90 = parse_slo("ttft_p99<1s,tpot_p90<1s")


@pytest.mark.parametrize("n", [1, 7, 60])
@pytest.mark.parametrize("p", [0.001, 0.01, 0.1, 0.5, 0.93])
def test_chances_are_those_of_the_exact_sum(n: int, p: float) -> None:
    exact = Fraction(p)
    terms = [comb(n, i) * exact**i * (1 - exact) ** (n - i) for i in range(n + 1)]
    for k in {0, 1, n // 3, n // 2, n - 1, n}:
        assert chance_at_most(k, n, p) == pytest.approx(float(sum(terms[: k + 1])), rel=1e-9, abs=1e-15)
        assert chance_at_least(k, n, p) == pytest.approx(float(sum(terms[k:])), rel=1e-9, abs=1e-15)


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    # None of n: 1 - error^(1/n). All of n: error^(1/n). 4 of 20 with 2.5 % on each side: 0.0573, 0.4366, as in tables.
    assert upper_bound(0, 299, 0.05) == pytest.approx(1 - 0.05 ** (1 / 299))
    assert lower_bound(10, 10, 0.05) == pytest.approx(0.05**0.1)
    assert (lower_bound(0, 9, 0.1), upper_bound(9, 9, 0.1)) == (0.0, 1.0)
    assert lower_bound(4, 20, 0.025) == pytest.approx(0.0573, abs=5e-5)
    assert upper_bound(4, 20, 0.025) == pytest.approx(0.4366, abs=5e-5)


def test_a_p99_needs_299_requests_without_one_beyond() -> None:
    # 0.99^298 = 0.0500, just above 5 %; 0.99^299 = 0.0495.
    assert Count(P99, 0, 298).judge(0.05) == "undecided"
    assert Count(P99, 0, 299).judge(0.05) == "met"
    # Of 100 requests, five or more beyond has a chance of 0.34 % if one in a hundred is.
    assert Count(P99, 4, 100).judge(0.01) == "undecided"
    assert Count(P99, 5, 100).judge(0.01) == "not met"
    assert Count(P99, 0, 0).judge(0.05) == "undecided"


def test_all_limits_have_to_be_met_and_one_that_is_not_is_enough() -> None:
    good, bad = Count(P99, 0, 500), Count(P90, 80, 500)
    assert judge([good, Count(P90, 20, 500)], 0.05) == "met"
    assert judge([good, bad], 0.05) == "not met"
    assert judge([good, Count(P90, 50, 500)], 0.05) == "undecided"


def test_a_longer_probe_is_as_long_as_it_must_be() -> None:
    assert factor_to_decide([Count(P99, 0, 100)], 0.05, (2, 3, 4)) == 3
    assert factor_to_decide([Count(P99, 3, 300)], 0.05, (2, 3, 4)) == 4


def test_the_design_effect_by_hand() -> None:
    # 2 of 4 beyond, p = 1/2. Both in one of two bunches: 2 * (1 + 1) / (4 * 1/4) = 4; one in each: 0, but at least 1.
    assert design_effect([(2, 2), (0, 2)]) == pytest.approx(4.0)
    assert design_effect([(1, 2), (1, 2)]) == 1.0
    assert design_effect([(0, 5), (0, 5)]) == design_effect([(3, 9)]) == 1.0


def test_a_session_without_a_request_beyond_is_worth_about_one_request() -> None:
    sessions = [(0, 7)] * 400
    assert Count(P99, 0, 2800, of_sessions(sessions)).worth == pytest.approx(400, rel=0.01)
    # Sessions of one request are that anyway, and each that is beyond by itself speaks against bunches.
    assert of_sessions([(0, 1)] * 400) == pytest.approx(1.0, abs=0.01)
    assert of_sessions([(1, 7)] * 100 + [(0, 7)] * 300) < 1.5


@pytest.mark.parametrize("length", [1, 7])
def test_sessions_that_are_beyond_as_a_whole_are_not_met_more_often_than_stated(length: int) -> None:
    """One session in a hundred is beyond throughout: just not met. As single requests, it is met far too often."""
    chance = random.Random(7)
    wrong = careless = 0
    for _ in range(1500):
        sessions = [(length if chance.random() < 0.01 else 0, length) for _ in range(400)]
        beyond, of = sum(one for one, _ in sessions), length * len(sessions)
        wrong += Count(P99, beyond, of, of_sessions(sessions)).judge(0.05) == "met"
        careless += Count(P99, beyond, of).judge(0.05) == "met"
    assert wrong / 1500 < 0.05
    assert (careless / 1500 > 0.2) == (length == 7)
