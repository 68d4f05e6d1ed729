"""Intervals over sessions: what is drawn, and when there is no interval."""

from __future__ import annotations

import numpy as np
import pytest

from harness.statistics import by_session
from harness.statistics.bootstrap import draws
from harness.statistics.by_session import numbered, quantiles_by_session, ratio_by_session, share_by_session
from harness.statistics.wilson import wilson

RNG = np.random.default_rng(3)
SESSIONS = np.repeat(np.arange(30) * 7, 4)
PROMPT = RNG.integers(100, 900, 120).astype(float)
CACHED = np.floor(PROMPT * RNG.uniform(0, 1, 120))
TIMES = RNG.lognormal(4, 1, 120)


def _written_out(number: int) -> list[np.ndarray]:
    """The requests of each draw, one by one."""
    (counts,) = next(draws([30], number))
    return [np.repeat(np.arange(120), np.repeat(row.astype(int), 4)) for row in counts]


def test_the_interval_of_a_hit_rate_is_between_percentiles_of_the_draws_written_out() -> None:
    found = ratio_by_session(CACHED, PROMPT, SESSIONS, number=400)
    rates = sorted(CACHED[which].sum() / PROMPT[which].sum() for which in _written_out(400))
    assert found.value == pytest.approx(CACHED.sum() / PROMPT.sum())
    assert (found.low, found.high) == pytest.approx((rates[9], rates[390]))
    assert found.sessions == 30


def test_the_interval_of_a_percentile_likewise() -> None:
    found = quantiles_by_session(TIMES, SESSIONS, (0.5, 0.9), number=400)
    for share, estimate in found.items():
        drawn = sorted(np.quantile(TIMES[which], share) for which in _written_out(400))
        assert estimate.value == pytest.approx(np.quantile(TIMES, share))
        assert (estimate.low, estimate.high) == pytest.approx((drawn[9], drawn[390]))


def test_sessions_that_are_alike_within_widen_the_interval() -> None:
    upper = np.repeat(RNG.integers(0, 2, 30), 4).astype(float)
    together = ratio_by_session(upper, np.ones(120), SESSIONS)
    alone = ratio_by_session(upper, np.ones(120), np.arange(120))
    assert None not in (together.high, together.low, alone.high, alone.low)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)  # type: ignore[operator]


def test_what_nobody_reports_is_not_known_and_few_sessions_have_no_interval() -> None:
    nothing = np.full(120, np.nan)
    assert ratio_by_session(nothing, PROMPT, SESSIONS).value is None
    few = ratio_by_session(CACHED[:76], PROMPT[:76], SESSIONS[:76])
    assert few.value == pytest.approx(CACHED[:76].sum() / PROMPT[:76].sum())
    assert (few.low, few.reason) == (None, "19 sessions are too few for an interval")
    rare = quantiles_by_session(TIMES[:80], SESSIONS[:80], (0.99,))[0.99]
    assert (rare.high, rare.reason) == (None, "80 requests are too few for an interval")


def test_failures_as_infinity_reach_the_upper_end() -> None:
    times = np.where(np.arange(120) % 12 == 0, np.inf, TIMES)
    found = quantiles_by_session(times, SESSIONS, (0.5, 0.9))
    assert found[0.9].high == np.inf
    assert found[0.5].high is not None
    assert found[0.5].high < np.inf


def test_a_share_of_requests_that_fail_by_session_is_as_unsure_as_that_of_so_many_sessions() -> None:
    whole = np.repeat(np.arange(40) % 4 == 0, 5)  # 10 of 40 sessions, throughout
    together = share_by_session(whole, np.repeat(np.arange(40), 5))
    # By hand: the spread of 10 x (5 - 1.25)^2 + 30 x 1.25^2, times 40 / 39, over 200 x 0.25 x 0.75: 5 x 40 / 39
    assert (together.low, together.high) == pytest.approx(wilson(50, 200, effect=200 / 39))
    alone = share_by_session(whole, np.arange(200))
    assert (alone.low, alone.high) == pytest.approx(wilson(50, 200, effect=200 / 199))
    assert share_by_session(np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)).value is None


def test_bundles_of_sessions_tell_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = np.repeat(np.arange(2_000), 2)
    upper, lower = RNG.uniform(0, 1, 4_000), np.ones(4_000)
    whole = ratio_by_session(upper, lower, sessions)
    monkeypatch.setattr(by_session, "BUNDLES", 200)
    bundled = ratio_by_session(upper, lower, sessions)
    assert bundled.value == pytest.approx(whole.value)
    assert bundled.sessions == 2_000
    assert None not in (bundled.high, bundled.low, whole.high, whole.low)
    assert bundled.high - bundled.low == pytest.approx(whole.high - whole.low, rel=0.15)  # type: ignore[operator]


@pytest.mark.parametrize("names", [[3, 0, 3, 7], [-5, 2**60, -5, 2**61]])
def test_sessions_are_numbered_in_their_order_whatever_their_names(names: list[int]) -> None:
    places, count = numbered(np.array(names))
    assert (places.tolist(), count) == (np.unique(names, return_inverse=True)[1].tolist(), 3)
