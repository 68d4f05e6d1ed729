"""Values that come in pieces: their mean and quantiles against numpy's of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analysis.sample import Sample

SHARES = [0.0, 0.5, 0.9, 0.95, 0.99, 1.0]


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_pieces_together_have_the_mean_and_the_quantiles_of_all_values(kind: type[np.floating]) -> None:
    values = np.random.default_rng(1).lognormal(3, 1, 10_001).astype(kind)
    joined = Sample.joined(Sample(piece) for piece in np.split(values, [0, 7, 4_000]))
    exact = values.astype(np.float64)
    assert joined.mean() == pytest.approx(exact.mean())
    assert joined.quantiles(SHARES) == pytest.approx(np.quantile(exact, SHARES).tolist())


def test_weights_stay_with_their_values_and_a_quantile_has_its_share_of_them() -> None:
    rng = np.random.default_rng(2)
    values, weights = rng.permutation(np.arange(1.0, 301.0)), rng.integers(1, 9, 300).astype(np.float64)
    pieces = zip(np.split(values, [100, 150]), np.split(weights, [100, 150]), strict=True)
    joined = Sample.joined(Sample(*piece) for piece in pieces)
    repeated = np.repeat(values, weights.astype(int))
    assert joined.mean() == pytest.approx(repeated.mean())
    assert joined.quantiles(SHARES[1:]) == np.quantile(repeated, SHARES[1:], method="inverted_cdf").tolist()


def test_no_value_in_any_piece_is_not_zero() -> None:
    joined = Sample.joined([Sample(np.empty(0)), Sample(np.empty(0))])
    assert (joined.mean(), joined.quantiles([0.5, 0.99])) == (None, [None, None])
