"""Requests that are counted in pieces add up to what they do as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harness.analysis.run import Run
from harness.exchange.openmetrics import lines
from harness.exchange.request_series import COLUMNS, RequestSeries
from tests.exchange.test_openmetrics import BASE_NS, ROWS


def counted(run: Run, borders: Sequence[int]) -> str:
    found = RequestSeries(BASE_NS)
    rows = run.only_target().measured[list(COLUMNS)]
    ends = [*borders, len(rows)]
    for start, end in zip([0, *borders], ends, strict=True):
        found.add(rows.iloc[start:end], np.ones(end - start, dtype=bool))
    return "".join(lines(list(found.series({"run_id": "r"}))))


def test_pieces_add_up_to_the_whole(make_run: Callable[..., Run]) -> None:
    run = make_run(ROWS)
    whole = counted(run, [])
    assert "kvswarm_ttft_seconds_bucket" in whole
    for borders in ([1], [2, 4], [1, 2, 3, 4], [3, 3]):
        assert counted(run, borders) == whole
