"""Statistics of draws of whole sessions, against numpy on the requests written out."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analysis.latency import quantile
from harness.statistics import bootstrap
from harness.statistics.bootstrap import Quantile, RatioOfSums, draws


def test_a_draw_has_as_many_sessions_as_there_are_and_the_same_seed_the_same_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bootstrap, "BLOCK_CELLS", 40)
    blocks = list(draws((7, 3), 12))

    assert [(len(ours), len(theirs)) for ours, theirs in blocks] == [(5, 5), (5, 5), (2, 2)]
    assert all((ours.sum(axis=1) == 7).all() and (theirs.sum(axis=1) == 3).all() for ours, theirs in blocks)
    again = list(draws((7, 3), 12))
    assert all((one[0] == other[0]).all() for one, other in zip(blocks, again, strict=True))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("window_errors", [6.0, 0.0])
def test_a_quantile_of_a_draw_is_that_of_its_requests_written_out(
    share: float, window_errors: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "_WINDOW_ERRORS", window_errors)  # 0: nearly every draw lies outside
    generator = np.random.default_rng(1)
    sessions = np.repeat(np.arange(40), generator.integers(1, 9, 40))
    values = np.round(generator.lognormal(5, 1, len(sessions)), 1)
    (counts,) = next(draws((40,), 50))

    expected = [np.quantile(np.repeat(values, draw[sessions].astype(int)), share) for draw in counts]
    assert Quantile(values, sessions, 40, share).of(counts) == pytest.approx(expected)


def test_a_quantile_next_to_a_failure_is_infinite() -> None:
    values = np.array([1.0, 2.0, np.inf, np.inf])
    for share in (0.0, 1 / 3, 0.4, 0.5, 2 / 3, 0.9):
        found = Quantile(values, np.arange(4), 4, share).of(np.ones((1, 4)))[0]
        assert found == pytest.approx(quantile(sorted(values.tolist()), share)), share


def test_a_draw_without_a_request_that_tells_it_is_not_known() -> None:
    counts = np.array([[0.0, 2.0], [1.0, 1.0]])
    only_first = np.zeros(2, dtype=np.int64)

    values, sessions = np.array([5.0, np.nan, 3.0]), np.array([0, 1, 0])
    assert Quantile(values, sessions, 2, 0.5).of(counts) == pytest.approx([np.nan, 4.0], nan_ok=True)
    assert RatioOfSums(np.array([1.0, 2.0]), np.array([4.0, 8.0]), only_first, 2).of(counts) == pytest.approx(
        [np.nan, 0.25], nan_ok=True
    )


def test_a_hit_rate_is_a_ratio_of_sums_in_every_draw() -> None:
    cached, prompt = np.array([0.0, 90.0, 50.0]), np.array([100.0, 100.0, 1000.0])
    rate = RatioOfSums(cached, prompt, np.array([0, 0, 1]), 2)

    # Both sessions; the first twice; the second twice.
    assert rate.of(np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])) == pytest.approx([140 / 1200, 0.45, 0.05])


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_values_that_are_equal_or_missing_or_infinite_are_counted_as_they_are(share: float) -> None:
    generator = np.random.default_rng(2)
    sessions = generator.integers(0, 30, 500)
    values = generator.choice([1.0, 2.0, 2.0, 2.0, 3.0, np.nan, np.inf], 500)
    statistic = Quantile(values, sessions, 30, share)
    (counts,) = next(draws((30,), 40))
    known = ~np.isnan(values)
    written_out = [np.sort(np.repeat(values[known], draw[sessions[known]].astype(int))) for draw in counts]
    assert (statistic.requests, statistic.told) == (known.sum(), 30)
    assert statistic.of(counts) == pytest.approx([quantile(one, share) for one in written_out])
