"""Requests and tokens a second, over the time that each tool divides by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.analysis.definitions import DEFINITIONS
from harness.analysis.run import Run, TargetRun
from harness.analysis.summary import summarise
from harness.analysis.tables import Footnotes, Sides
from harness.analysis.throughput import WINDOWS, Throughput, throughput
from harness.analysis.throughput_table import throughput_table
from harness.record.manifest import Phase
from tests.analysis.rows import Row, request

MakeRun = Callable[..., Run]
SECOND = 10**9
MEASURE = Phase(phase="measure", targets=("t",), start_ns=10 * SECOND, end_ns=20 * SECOND)


def sent(send_s: float, last_s: float, end_s: float, **changes: Any) -> Row:
    stamps = {"t_due": send_s, "t_send": send_s, "t_last": last_s, "t_end": end_s}
    row = request(**{name: round(at_s * SECOND) for name, at_s in stamps.items()})
    return row | {"prompt_tokens": 100, "output_tokens": 10} | changes


ROWS = [
    sent(8, 11, 11.5, phase="ramp"),  # ended in the measured phase, sent before it
    sent(10, 12, 12.5),
    sent(14, 18, 18.5),
    sent(19, 21.5, 22),  # ended after it
    sent(19.5, 24, 26, status="timeout"),
]


@pytest.fixture
def run(make_run: MakeRun) -> TargetRun:
    return make_run(ROWS, phases=[MEASURE]).only_target()


def test_each_tool_divides_by_its_own_time(run: TargetRun) -> None:
    found = {tool: throughput(run, tool) for tool in WINDOWS}
    by_hand = {
        "kvswarm": (3, 10.0),
        "guidellm": (3, 10.0),  # the one of the ramp, and not the one that ended too late
        "vllm bench": (3, 16.0),  # 10 s to 26 s
        "sglang bench": (3, 16.0),
        "inference-perf": (3, 16.0),
        "aiperf": (3, 11.5),  # 10 s to 21.5 s
    }
    for tool, (requests, length_s) in by_hand.items():
        expected = Throughput(requests / length_s, 100 * requests / length_s, 10 * requests / length_s)
        assert found[tool] == expected  # type: ignore[index]
        assert expected.total_tokens == pytest.approx(110 * requests / length_s)


def test_a_request_that_ended_too_late_is_not_guidellms(make_run: MakeRun) -> None:
    found = throughput(make_run(ROWS[1:], phases=[MEASURE]).only_target(), "guidellm")
    assert found is not None
    assert found.requests == 0.2


def test_a_count_that_is_missing_makes_the_sum_unknown(make_run: MakeRun) -> None:
    rows = [sent(10, 12, 12.5), sent(10, 12, 12.5, output_tokens=None)]
    found = throughput(make_run(rows, phases=[MEASURE]).only_target(), "kvswarm")
    assert found == Throughput(0.2, 20.0, None)
    assert found.total_tokens is None


def test_without_a_stretch_of_time_there_is_no_rate(make_run: MakeRun) -> None:
    run = make_run([request(status="refused", t_send=None)]).only_target()
    assert {throughput(run, tool) for tool in WINDOWS} == {None}


def test_every_tool_has_both_times_and_throughput() -> None:
    assert WINDOWS.keys() == DEFINITIONS.keys()


def test_the_report_has_a_line_for_each_rate_and_says_what_is_not_known(make_run: MakeRun) -> None:
    untold = [*ROWS, sent(11, 12, 13, output_tokens=None)]
    shown = []
    for rows in (ROWS, untold):
        run = make_run(rows, phases=[MEASURE])
        notes = Footnotes()
        table = throughput_table(Sides([summarise(run.only_target())]), notes)
        assert table is not None
        shown.append([list(column.cells) for column in table.columns])
        assert len(notes.all()) == 1 + (rows is untold)
    ok = sum(row["status"] == "ok" and row["phase"] == "measure" for row in ROWS)
    names = ["requests/s", "prompt tokens/s", "output tokens/s"]
    assert shown == [
        [names, [f"{ok / 10:.2f}", f"{ok * 10:.2f}", f"{ok:.2f}"]],
        [names, [f"{(ok + 1) / 10:.2f}", f"{(ok + 1) * 10:.2f}", "- [1]"]],
    ]
