from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from harness.analysis.latency import Floats, Percentiles, percentiles_with, quantile


def percentiles(values: pd.Series | Sequence[float] | Floats, failures: int = 0) -> Percentiles:
    return percentiles_with(values, [failures])[0]


def test_between_two_ranks_the_value_is_interpolated() -> None:
    # Ranks 0 to 3; p50 is rank 1.5, p90 rank 2.7, p99 rank 2.97.
    values = percentiles([40.0, 10.0, 30.0, 20.0])

    assert values.p50 == pytest.approx(25.0)
    assert values.p90 == pytest.approx(37.0)
    assert values.p99 == pytest.approx(39.7)
    assert values.n == 4


def test_it_agrees_with_numpy_on_finite_values() -> None:
    rng = random.Random(1)
    for n in (1, 2, 3, 99, 100, 101, 1000):
        values = sorted(rng.expovariate(0.1) for _ in range(n))
        for share in (0.0, 0.5, 0.9, 0.99, 1.0):
            assert quantile(values, share) == pytest.approx(float(np.percentile(values, 100 * share)))


def test_of_many_values_without_order_it_agrees_with_numpy_too() -> None:
    drawn = np.random.default_rng(1)
    values = np.where(drawn.random(5_000) < 0.1, np.nan, drawn.lognormal(3.0, 2.0, 5_000))
    for failures in (0, 3, 500, 4_000):
        found = percentiles(values, failures)
        whole = np.sort(np.concatenate([values[~np.isnan(values)], np.full(failures, np.inf)])).tolist()
        assert (found.p50, found.p90, found.p99) == tuple(quantile(whole, share) for share in (0.5, 0.9, 0.99))
        assert found == percentiles_with(values, [7, failures])[1]
    assert found.p90 == math.inf
    finite = percentiles(values)
    assert (finite.p50, finite.p99) == pytest.approx(np.nanpercentile(values, [50, 99]).tolist())


def test_a_null_is_no_value() -> None:
    assert percentiles(pd.Series([1.0, float("nan"), 3.0])).p50 == 2.0
    assert percentiles(pd.Series([1, pd.NA, 3], dtype="Int64")).n == 2


def test_without_values_nothing_is_known() -> None:
    assert percentiles([float("nan")]) == Percentiles(0, None, None, None, True)


def test_failures_count_as_infinitely_slow() -> None:
    values = percentiles([1.0] * 9, failures=1)

    # Rank of p90 is 8.1: between the last success and the failure.
    assert (values.n, values.p50, values.p90, values.p99) == (10, 1.0, math.inf, math.inf)
    # Rank of p90 among 11 values is exactly 9, the last success.
    assert percentiles([1.0] * 10, failures=1).p90 == 1.0
    assert percentiles([], failures=2).p50 == math.inf


def test_the_99th_percentile_of_fewer_than_100_values_is_called_rough() -> None:
    assert percentiles([1.0] * 99).p99_is_rough
    assert not percentiles([1.0] * 100).p99_is_rough
