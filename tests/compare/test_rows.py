"""The requests of a recorded run as they are compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.compare.rows import in_all, pooled, read_rows
from harness.record.reader import open_run
from tests.analysis.rows import request, second
from tests.recorded import write_run

S = 1_000_000_000


def row(session: int | None, turn: int, at_s: int, **changes: object) -> dict[str, object]:
    sent = request(session=session, turn=turn, request_id=f"{session}-{turn}", t_due=at_s * S, t_send=at_s * S)
    sent |= {"t_end": at_s * S + S // 2, "ttft_ms": 10.0 * at_s, "prompt_tokens": 100, "cached_tokens": 50}
    return sent | changes


ROWS = [
    row(1, 0, 100),
    row(1, 1, 103, warmth="warm", cached_tokens=49),  # while the harness was the bottleneck
    row(2, 0, 104, status="timeout", ttft_ms=None, cached_tokens=None),
    row(3, 0, 105, parent_request="1-1", cached_tokens=None),
    row(4, 0, 106, status="cancelled"),
    row(5, 0, 107, phase="ramp"),
    row(None, 0, 108),
    row(6, 0, 109, target="u"),
]


def test_rows_are_the_measured_ones_of_a_session_that_the_end_did_not_cut_off(tmp_path: Path) -> None:
    run = open_run(write_run(tmp_path, "r", ROWS, health=[second(102), second(103, cpu_share=0.95)]))
    found = read_rows(run, "t")
    assert list(zip(found.session, found.turn, strict=True)) == [(1, 0), (1, 1), (2, 0), (3, 0)]
    assert found.root.tolist() == [1, 1, 2, 1]  # the sub-agent belongs to session 1
    assert (found.ok.tolist(), found.counted.tolist()) == ([True, True, False, True], [True, False, True, True])
    assert (found.hit.tolist(), found.miss.tolist()) == ([True, False, False, False], [False, True, False, False])
    assert found.cold.tolist() == [True, False, True, True]
    assert found.stretch.tolist() == [0, 17, 23, 29]  # of 30, over 5 s
    np.testing.assert_array_equal(found.column("ttft_ms"), [1_000, 1_030, np.nan, 1_050])
    assert read_rows(run, "t", all_requests=True).counted.all()


def test_a_column_follows_the_rows_that_are_taken_and_pooled(tmp_path: Path) -> None:
    run = read_rows(open_run(write_run(tmp_path, "r", ROWS)), "t")
    first, second_run = in_all([run, run.take(run.session != 1)])
    assert (first.session.tolist(), first.column("cached_tokens").shape) == ([2, 3], (2,))
    both = pooled([run, second_run])
    np.testing.assert_array_equal(both.column("ttft_ms"), [1_000, 1_030, np.nan, 1_050, np.nan, 1_050])
