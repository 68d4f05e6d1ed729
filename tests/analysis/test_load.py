from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.analysis import Run, load
from harness.record.reader import open_run
from tests.analysis.rows import request, sample

MakeRun = Callable[..., Run]


def test_stamps_keep_their_nanoseconds_even_beside_a_null(make_run: MakeRun) -> None:
    stamp = 1_764_430_000_123_456_789
    run = make_run([request(t_due=1, t_first=stamp), request(t_due=2, t_first=None)])

    assert run.requests["t_first"].tolist() == [stamp, pd.NA]


def test_null_stays_null_and_zero_stays_zero(make_run: MakeRun) -> None:
    run = make_run([request(t_due=1, cached_tokens=0), request(t_due=2, cached_tokens=None)])

    assert run.requests["cached_tokens"].isna().tolist() == [False, True]
    assert run.requests["ttft_ms"].isna().all()


def test_lists_and_labels_are_there(make_run: MakeRun) -> None:
    run = make_run([request(path=[5, 6], itl_ms=[0.5])], [sample("x", 1.0, 1, "before", labels={"a": "b"})])

    assert list(run.requests["path"].iloc[0]) == [5, 6]
    assert list(run.requests["itl_ms"].iloc[0]) == [0.5]
    assert run.server_metrics["labels"].iloc[0] == [("a", "b")]


def test_only_measured_requests_are_measured(make_run: MakeRun) -> None:
    run = make_run([request(phase="warmup"), request(request_id="this one"), request(phase="check")])

    assert run.measured["request_id"].tolist() == ["this one"]


def test_problems_of_the_record_and_of_the_run_are_both_told(make_run: MakeRun) -> None:
    run = make_run([request()], state="incomplete", problems=["worker 1 was lost"])

    assert run.problems == ("The run is incomplete: some of its rows may be missing.", "worker 1 was lost")


def test_a_run_that_was_opened_already_can_be_loaded(make_run: MakeRun, tmp_path: object) -> None:
    made = make_run([request()])
    recorded = open_run(f"{tmp_path}/{made.manifest.run_id}")

    assert len(load(recorded).requests) == 1
