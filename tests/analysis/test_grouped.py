"""Sums and quantiles group by group, against numpy and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from harness.analysis import columns
from harness.analysis.grouped import counts, first_and_last, quantiles_of, sums

GROUPS = np.array([2, 0, -1, 2, 0, 2], dtype=np.int8)


def test_sums_and_counts_leave_out_what_is_in_no_group() -> None:
    assert counts(GROUPS, 4).tolist() == [2, 0, 3, 0]
    assert sums(GROUPS, np.array([1, 10, 100, 1_000, 10_000, 2**40]), 4).tolist() == [10_010, 0, 1_001 + 2**40, 0]


@pytest.mark.parametrize("rows", [1, 7, 5_000])
def test_quantiles_are_those_of_each_groups_own_values(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_STRETCH_ROWS", 1_000)  # a group's values lie in several stretches
    generator = np.random.default_rng(rows)
    groups = generator.integers(-1, 5, rows).astype(np.int8)
    values = np.where(generator.random(rows) < 0.1, np.nan, generator.lognormal(4, 1, rows))
    shares = (0.0, 0.5, 0.99, 0.999, 1.0)
    own = {group: values[(groups == group) & ~np.isnan(values)] for group in range(5)}
    expected = {group: (len(some), np.quantile(some, shares)) for group, some in own.items() if len(some)}
    found = quantiles_of(groups, values.copy(), shares)
    assert {group: n for group, (n, _) in found.items()} == {group: n for group, (n, _) in expected.items()}
    for group, (_, at) in found.items():
        assert at == pytest.approx(expected[group][1].tolist())


def test_what_a_name_has_first_and_last() -> None:
    names = np.array([7, 3, 7, 7], dtype=np.int64)
    first, last = np.array([4, 1, 2, 3], dtype=np.int8), np.array([4, 1, 9, 3], dtype=np.int8)
    assert [one.tolist() for one in first_and_last(names, first, last)] == [[7, 3], [2, 1], [9, 1]]
