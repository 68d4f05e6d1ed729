from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from harness.analysis import Run, load
from harness.record.manifest import Phase
from harness.record.reader import open_run
from tests.analysis.rows import request, sample, target

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


def test_each_target_has_its_own_rows_samples_and_phases(make_run: MakeRun) -> None:
    run = make_run(
        [request(target="b", request_id="1"), request(request_id="2"), request(request_id="3", phase="warmup")],
        [sample("x", 1.0, 1, "before"), sample("x", 2.0, 1, "before", target="b")],
        targets=[target(), target("b")],
        phases=[
            Phase(phase="warmup", targets=("t",), start_ns=1, end_ns=2),
            Phase(phase="measure", targets=("t", "b"), start_ns=3, end_ns=4),
        ],
    )
    first, second = run.by_target()

    assert (first.target.name, second.target.name) == ("t", "b")
    assert (first.requests["request_id"].tolist(), second.requests["request_id"].tolist()) == (["2", "3"], ["1"])
    assert first.measured["request_id"].tolist() == ["2"]
    assert (first.server_metrics["value"].tolist(), second.server_metrics["value"].tolist()) == ([1.0], [2.0])
    assert [[phase.phase for phase in one.phases] for one in (first, second)] == [["warmup", "measure"], ["measure"]]


def test_the_only_target_is_given_where_there_is_only_one(make_run: MakeRun) -> None:
    assert make_run([request()]).only_target().target.name == "t"
    with pytest.raises(ValueError, match="too many values"):
        make_run([], targets=[target(), target("b")]).only_target()


def test_rows_of_a_target_that_run_json_does_not_list_are_told(make_run: MakeRun) -> None:
    run = make_run([request(target="x"), request(target="x"), request()], [sample("x", 1.0, 1, "before", target="y")])

    assert run.problems == (
        "2 rows of requests are of a target 'x' that run.json does not list; no table shows them.",
        "1 rows of server_metrics are of a target 'y' that run.json does not list; no table shows them.",
    )
