"""When a quantile has an interval, and what stretches of time tell beyond sessions."""

from __future__ import annotations

import numpy as np
import pytest

from harness.statistics.bootstrap import Quantile
from harness.statistics.by_session import Estimate, difference, quantiles_by_session, share_by_session
from harness.statistics.moments import STRETCHES, spread, too_few
from harness.statistics.wilson import wilson

SESSIONS = np.repeat(np.arange(100), 6)
TURN = np.tile(np.arange(6), 100)
STRETCH = np.minimum(SESSIONS // 20 * 6 + TURN, STRETCHES - 1)
"""20 users play five sessions each, and a turn a stretch: all of them begin in the first one."""
TIMES = np.random.default_rng(2).lognormal(3, 0.3, 600)
HERD = (SESSIONS < 20) & (TURN == 0)


def test_a_quantile_takes_so_many_sessions_requests_and_moments() -> None:
    def reason(values: np.ndarray, clusters: np.ndarray, share: float, moments: bool = False) -> str:
        return too_few(Quantile(values, clusters, int(clusters.max()) + 1, share), moments=moments, whose=" of A")

    ranks = np.arange(600.0)
    assert reason(ranks[:19], np.arange(19), 0.5) == "19 sessions of A are too few for an interval"
    assert reason(ranks[:599], np.arange(599), 0.99) == "599 requests of A are too few for an interval"
    assert reason(ranks[:59], np.arange(59), 0.9) == "59 requests of A are too few for an interval"
    assert [reason(ranks[:n], np.arange(n), share) for n, share in ((600, 0.99), (60, 0.9), (20, 0.5))] == ["", "", ""]
    # From rank 539 on 61 requests, 30 of them of one session: 61^2 / (30^2 + 31) = 4.0
    few = np.where(ranks < 570, np.arange(600), 0)
    assert reason(ranks, few, 0.9) == "the slowest 10 % of A are worth 4.0 sessions, too few for an interval"
    assert reason(-ranks, few, 0.1) == "the fastest 10 % of A are worth 4.0 sessions, too few for an interval"
    halves = np.repeat(np.arange(6), 100)  # of the slower half each third is of one moment: 3
    assert reason(ranks, halves, 0.5, moments=True) == (
        "the slower half of A are worth 3.0 separate moments, too few for an interval (--ramp leaves the start out)"
    )
    # Values that are alike are all at the quantile, wherever their ranks are.
    assert reason(np.where(ranks < 500, 1.0, 9.0), few, 0.99) == ""


def test_a_percentile_within_one_moment_has_no_interval_and_the_others_have() -> None:
    slow = np.where(HERD, 500.0 + SESSIONS, TIMES)
    alone = quantiles_by_session(slow, SESSIONS, (0.5, 0.99), number=300)
    found = quantiles_by_session(slow, SESSIONS, (0.5, 0.99), number=300, stretches=STRETCH)

    assert alone[0.99].low is not None  # sessions alone do not see it
    assert (found[0.99].value, found[0.99].low) == (alone[0.99].value, None)
    assert found[0.99].reason.startswith("the slowest 1 % are worth 1.0 separate moments")
    assert (found[0.5].low, found[0.5].high) == pytest.approx((alone[0.5].low, alone[0.5].high))


def test_what_moments_share_widens_the_interval() -> None:
    waves = SESSIONS // 10 * 3 + TURN // 2
    shared = np.exp(np.random.default_rng(4).normal(0, 0.5, STRETCHES))[waves] * TIMES
    alone = quantiles_by_session(shared, SESSIONS, (0.5,), number=300)[0.5]
    found = quantiles_by_session(shared, SESSIONS, (0.5,), number=300, stretches=waves)[0.5]
    luck = np.random.default_rng(5).integers(0, STRETCHES, 600)
    scattered = quantiles_by_session(shared, SESSIONS, (0.5,), number=300, stretches=luck)[0.5]

    assert alone.low is not None
    assert alone.high is not None
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low > 1.3 * (alone.high - alone.low)
    assert (scattered.low, scattered.high) == pytest.approx((alone.low, alone.high))


def test_failures_of_one_moment_are_worth_few() -> None:
    together = share_by_session(HERD, np.arange(600), STRETCH)
    assert together.value == pytest.approx(20 / 600)
    apart = wilson(20, 600)
    assert together.high is not None
    assert apart is not None
    assert together.high > 2 * apart[1]


def test_a_difference_of_shares_is_that_of_newcombes_table() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table II, method 10: 56 of 70 less 48 of 80, and 0 of 20 less 0 of 10
    def share(k: int, n: int) -> Estimate:
        return share_by_session(np.arange(n) < k, np.arange(n))

    # To the design effect of requests that each are a session of their own: 80 / 79.
    assert difference(share(48, 80), share(56, 70)) == pytest.approx((0.0524, 0.3339), abs=2e-3)
    assert difference(share(0, 10), share(0, 20)) == pytest.approx((-0.2775, 0.1611), abs=5e-5)
    assert difference(share(0, 0), share(1, 20)) is None


def test_time_adds_what_it_tells_beyond_chance_and_what_cannot_be_told_may_be_anything() -> None:
    sessions = np.linspace(-1, 1, 1001)
    assert spread(0.0, sessions, [1.2 * sessions]).widened == 1
    assert spread(0.0, sessions, [2 * sessions]).widened == pytest.approx(2)
    still = spread(0.0, np.zeros(1001), [sessions])
    assert still.error == pytest.approx(sessions.std())
    assert still.interval() == pytest.approx((-0.95, 0.95))
    silent = np.where(np.arange(1001) < 100, np.nan, 0.0)
    unknown = spread(0.0, sessions, [silent])
    assert np.isnan(unknown.error)
    assert unknown.interval() == (-np.inf, np.inf)
