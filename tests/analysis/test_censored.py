"""Requests that the end of the run cut off: bounds of the percentiles, and the estimate between them."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analysis.censored import censored, kaplan_meier

# Weeks in remission under 6-mercaptopurine (Freireich et al., Blood 21, 1963), the textbooks' example.
ENDED = np.array([6, 6, 6, 7, 10, 13, 16, 22, 23], dtype=float)
STILL = np.array([6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35], dtype=float)


@pytest.mark.parametrize(
    ("share", "time"),
    # S is 0.857 at 6, 0.807 at 7, 0.753 at 10, 0.690 at 13, 0.627 at 16, 0.538 at 22 and 0.448 at 23.
    [(0.10, 6), (0.15, 7), (0.24, 10), (0.25, 13), (0.37, 16), (0.50, 23), (0.55, 23), (0.56, None)],
)
def test_kaplan_meier_as_in_the_textbooks(share: float, time: float | None) -> None:
    assert kaplan_meier(ENDED, STILL, share) == time


def test_without_any_that_was_cut_off_it_is_the_plain_empirical_quantile() -> None:
    times = np.array([4.0, 1.0, 3.0, 2.0])
    assert [kaplan_meier(times, np.array([]), share) for share in (0.25, 0.5, 0.51, 1.0)] == [1, 2, 3, 4]
    assert censored("TTFT", times, np.array([])).bounds == ()


def test_bounds_by_hand() -> None:
    found = censored("TTFT", np.array([10.0, 20.0, 30.0]), np.array([25.0, 90.0]))
    p50, p90, p99 = found.bounds
    # 10 20 25 30 90 at the least, 10 20 30 inf inf at the most; rank 2 of both
    assert (p50.without_ms, p50.low_ms, p50.high_ms) == (20, 25, 30)
    assert p90.low_ms == pytest.approx(66)
    assert p90.high_ms == np.inf
    assert p99.low_ms == pytest.approx(30 + 0.96 * 60)
    # S: 4/5 at 10, 3/5 at 20, 3/5 * 1/2 at 30
    assert (p50.kaplan_meier_ms, p90.kaplan_meier_ms) == (30, None)
    assert (found.requests, found.cut_off, found.oldest_ms) == (5, 2, 90)


def test_the_truth_is_between_the_bounds_whatever_the_cut_off_ones_would_have_taken() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        truth, room = rng.lognormal(4, 1, 300), rng.exponential(400, 300)
        is_cut = truth > room
        for one, share in zip(censored("TTFT", truth[~is_cut], room[is_cut]).bounds, (0.5, 0.9, 0.99), strict=True):
            assert one.low_ms <= np.quantile(truth, share) <= one.high_ms


def test_kaplan_meier_is_nearer_to_the_truth_than_leaving_them_out() -> None:
    rng = np.random.default_rng(6)
    without, guesses = [], []
    for _ in range(200):
        truth, room = rng.lognormal(4, 1, 300), rng.exponential(400, 300)
        is_cut = truth > room
        p50 = censored("TTFT", truth[~is_cut], room[is_cut]).bounds[0]
        assert p50.without_ms is not None
        assert p50.kaplan_meier_ms is not None
        without.append(p50.without_ms)
        guesses.append(p50.kaplan_meier_ms)
    true_median = np.exp(4)
    assert np.mean(guesses) == pytest.approx(true_median, rel=0.02)
    assert np.mean(without) < 0.93 * true_median


def test_a_failure_is_infinite_in_every_figure() -> None:
    found = censored("TTFT", np.array([10.0, 20.0]), np.array([15.0]), failures=2)
    p50, p90, _ = found.bounds
    # 10 15 20 inf inf, and 10 20 inf inf inf
    assert (p50.low_ms, p50.high_ms, p90.low_ms) == (20, np.inf, np.inf)
    assert found.requests == 5


def test_a_sentence_where_it_matters_and_only_there() -> None:
    times = np.linspace(100, 200, 1_000)
    few = censored("TTFT", times, np.array([50.0]))
    assert few.sentence() is None
    some = censored("TTFT", times, np.full(20, 5_000.0))
    assert some.sentence() == (
        "TTFT: the end of the run cut off 20 of 1,020 requests (the oldest after 5,000 ms), which the tables leave "
        "out; p99 is at least 5,000 ms (the tables have 199 ms). A longer run leaves less in doubt."
    )
    long = str(censored("TTFT", times, np.full(20, 995_000.0)).sentence())
    assert "(the oldest after 995 s), " in long
    assert "p99 is at least 995 s (the tables have 199 ms)" in long
    alike = censored("TTFT", np.linspace(100, 150, 1_000), np.array([5.0]), later_ms=np.full(30, 400.0))
    assert "; p99 is 400 ms, by Kaplan-Meier 400 ms (the tables have 150 ms)" in str(alike.sentence())
    none = censored("TTFT", np.array([]), np.array([70.0]))
    assert (none.bounds[0].without_ms, none.bounds[0].low_ms) == (None, 70)
    assert "(the tables have -)" in str(none.sentence())


def test_what_was_cut_off_after_it_had_its_time_is_in_the_bounds_and_not_in_the_tables() -> None:
    found = censored("TTFT", np.array([10.0, 20.0]), np.array([5.0]), later_ms=np.array([60.0]))
    p50 = found.bounds[0]
    # the tables have 10 20; 5 10 20 60 at the least, 10 20 60 inf at the most
    assert (p50.without_ms, p50.low_ms, p50.high_ms) == (15, 15, 40)
    assert (found.requests, found.cut_off) == (4, 1)
