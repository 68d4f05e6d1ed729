"""Rows of a machine whose clock is ahead: their times are written by the clock of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.record.schema import SERVER_METRICS
from harness.record.writer import PartWriter


@pytest.mark.parametrize("ahead_ns", [0, 1_500, -1_500])
def test_times_are_corrected_and_nothing_else(
    ahead_ns: int, tmp_path: Path, sample_row: Callable[..., dict[str, Any]]
) -> None:
    parts = PartWriter(tmp_path, "part", SERVER_METRICS, clock_ahead_ns=ahead_ns)
    parts.add(sample_row(t_ns=10_000, labels={}))
    parts.flush()
    (row,) = pq.read_table(tmp_path / "part-00000.parquet").to_pylist()
    assert row == sample_row(t_ns=10_000 - ahead_ns, labels=[])
