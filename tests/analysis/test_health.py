"""Requests that were under way while the harness was the bottleneck: which they are, and what becomes of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pandas as pd
import pytest
from rich.console import Console

from harness.analysis import Run
from harness.analysis.flags import flags
from harness.analysis.health import Marked, disturbed, marked_seconds
from harness.analysis.report import as_json, render
from harness.analysis.summary import summarise
from tests.analysis.rows import Row, request, second, target

MakeRun = Callable[..., Run]

S = 1_000_000_000
STALLED: Row = {"loop_lag_max_ms": 400.0}


def sent(start_s: float, end_s: float | None, **changes: object) -> Row:
    """A request of 100 tokens, of which 60 were cached, from one instant to another."""
    times = {"t_due": round(start_s * S), "t_send": round(start_s * S), "late_ms": 0.0, "ttft_ms": 10.0}
    times |= {} if end_s is None else {"t_end": round(end_s * S)}
    return request(**times | {"prompt_tokens": 100, "cached_tokens": 60} | changes)


def left_out(run: Run) -> list[str]:
    return sorted(run.requests.loc[run.left_out, "request_id"])


@pytest.mark.parametrize(
    ("row", "is_out"),
    [
        (sent(1.2, 1.9), False),
        # Over the whole second, into it, out of it, within it.
        (sent(1.5, 3.5), True),
        (sent(1.5, 2.1), True),
        (sent(2.9, 3.5), True),
        (sent(2.2, 2.3), True),
        (sent(3.0, 3.5), False),
        # Sent when the stall was over, which was why it was late.
        (sent(3.1, 3.5, late_ms=150.0), True),
        # Late for another reason: the turn before had not ended.
        (sent(3.1, 3.5, t_due=2 * S, blocked_ms=1_100.0), False),
        # What is known last of one that has no end; and one that was never sent.
        (sent(1.0, None, t_first=round(2.5 * S)), True),
        (sent(1.0, None, status="timeout"), False),
        (request(t_due=round(2.5 * S), t_send=None, status="refused"), True),
        (request(t_due=round(1.5 * S), t_send=None, status="refused"), False),
        (sent(2.2, 2.3, worker=1), False),
    ],
)
def test_a_request_under_way_in_a_marked_second_of_its_worker_is_left_out(
    row: Row, is_out: bool, make_run: MakeRun
) -> None:
    health = [second(n, worker, **(STALLED if (n, worker) == (2, 0) else {})) for n in range(5) for worker in (0, 1)]
    assert left_out(make_run([row], health=health)) == (["q"] if is_out else [])


def test_a_stall_of_many_seconds_is_one_row_and_all_of_it_counts(make_run: MakeRun) -> None:
    long = second(2, span_ms=6_000.0, loop_lag_max_ms=5_200.0)
    run = make_run([sent(n + 0.2, n + 0.4, request_id=str(n)) for n in range(10)], health=[second(1), long, second(8)])
    assert left_out(run) == ["2", "3", "4", "5", "6", "7"]


def test_marked_seconds_are_found_as_one_by_one_they_would_be() -> None:
    """Against every pair of a request and a second, looked at plainly."""
    health = pd.DataFrame(
        [second(n, worker, **(STALLED if n * (worker + 3) % 7 < 2 else {})) for n in range(40) for worker in range(3)]
    )
    rows = pd.DataFrame(
        [sent(n * 0.37, n * 0.37 + n % 5, worker=n % 3, late_ms=n % 4 * 90.0) for n in range(100)],
        index=range(500, 600),
    ).astype(dict.fromkeys(("t_due", "t_send", "t_first", "t_last", "t_end"), "Int64"))
    marked = marked_seconds(health)
    plainly = [
        label
        for label, row in rows.iterrows()
        if any(
            mark.worker == row["worker"]
            and row["t_send"] - row["late_ms"] * 1e6 < mark.end_ns
            and row["t_end"] >= mark.start_ns
            for mark in marked
        )
    ]
    assert disturbed(rows, marked).tolist() == plainly
    assert 0 < len(plainly) < len(rows)


def test_a_mark_says_when_who_and_why() -> None:
    health = pd.DataFrame(
        [second(3, 1, loop_lag_p50_ms=11.0), second(1, **STALLED), second(2), second(4, cpu_share=0.97)]
    )
    assert marked_seconds(health) == [
        Marked(0, 1 * S, 2 * S, "stall"),
        Marked(1, 3 * S, 4 * S, "lag"),
        Marked(0, 4 * S, 5 * S, "cpu"),
    ]


HEALTH = [second(0), second(1, **STALLED), second(2, loop_lag_max_ms=12.0), second(0, 1), second(1, 1, cpu_share=0.34)]
ROWS = [
    sent(0.2, 0.4),
    sent(1.2, 1.4, ttft_ms=900.0, cached_tokens=0, prompt_tokens=1_000, status="timeout"),
    sent(1.2, 1.4, worker=1, ttft_ms=30.0),
    sent(2.2, 2.4, ttft_ms=20.0),
]


def printed(run: Run) -> str:
    out = io.StringIO()
    render([run], Console(file=out, width=300))
    return out.getvalue()


def test_no_time_is_of_a_request_that_was_left_out(make_run: MakeRun) -> None:
    summary = summarise(make_run(ROWS, health=HEALTH).only_target())

    (group,) = [group for group in summary.groups if group.warmth == "all"]
    assert (group.requests, group.failed, group.times.ttft.n, group.times.ttft.p50) == (3, 0, 3, 20.0)
    assert summary.stamps.late_ms.n == 3
    assert (summary.health.requests, summary.health.measured, summary.health.left_out) == (1, 4, True)
    assert (summary.health.seconds, len(summary.health.marked)) == (5, 1)


def test_its_tokens_count_as_the_cache_was_asked_for_them_all_the_same(make_run: MakeRun) -> None:
    """The second request was answered from what the first, left out, had brought into the cache."""
    path = {"planned_prompt_tokens": 100, "path": [1], "path_tokens": [100]}
    rows = [sent(1.2, 1.4, **path, t_first=round(1.3 * S), cached_tokens=0), sent(2.2, 2.4, **path, cached_tokens=99)]
    summary = summarise(make_run(rows, health=HEALTH).only_target())

    assert (summary.groups[0].requests, summary.groups[0].hit_rate.requests) == (1, 2)
    assert summary.hit_rate.rate == 99 / 200
    steps = summary.waterfall.steps
    assert steps is not None
    assert (steps.requests, steps.prompt_tokens, steps.shareable, steps.measured) == (2, 200, 100, 99)


def test_all_of_them_count_if_they_are_asked_for(make_run: MakeRun) -> None:
    run = make_run(ROWS, health=HEALTH, all_requests=True)
    summary = summarise(run.only_target())

    (group,) = [group for group in summary.groups if group.warmth == "all"]
    assert (len(run.counted), group.requests, group.failed) == (4, 4, 1)
    assert (summary.health.requests, summary.health.left_out) == (1, False)


def test_where_all_of_them_are_left_out_no_time_is_known(make_run: MakeRun) -> None:
    run = make_run([ROWS[1]], health=HEALTH)
    (group,) = [group for group in summarise(run.only_target()).groups if group.warmth == "all"]
    assert (len(run.measured), len(run.counted)) == (1, 0)
    assert (group.requests, group.times.ttft.n, group.times.ttft.p50) == (0, 0, None)
    assert "1 of 1 measured requests were under way then, and are left out" in printed(run)


def test_the_report_says_how_many_of_how_many(make_run: MakeRun) -> None:
    text = printed(make_run(ROWS, health=HEALTH))
    assert (
        "Problem: harness health: The harness was the bottleneck in 1 of 5 worker seconds (1 stall); 1 of 4 measured "
        "requests were under way then, and are left out of all times (--all-requests counts them)"
    ) in text
    words = " ".join(text.split())
    assert "harness health loop late by at most 400 ms, at most 34.0 % of a core; the bottleneck in 1 of 5" in words


def test_the_report_says_so_where_they_count_all_the_same(make_run: MakeRun) -> None:
    text = printed(make_run(ROWS, health=HEALTH, all_requests=True))
    assert "1 of 4 measured requests were under way then, and count all the same (--all-requests)" in text


def test_a_harness_that_kept_up_gets_no_warning(make_run: MakeRun) -> None:
    text = printed(make_run(ROWS, health=[second(0), second(1, socket_errors=2), second(2)]))
    assert "Problem: harness health" not in text
    assert "at most 3.00 ms, at most 10.0 % of a core, 2 socket errors; the bottleneck in none of 3" in " ".join(
        text.split()
    )


def test_one_second_of_many_is_a_note_and_no_problem_in_every_output(make_run: MakeRun) -> None:
    rows = [sent(1.2, 1.9, request_id="amid"), *(sent(5 + n, 5.5 + n, request_id=str(n)) for n in range(20))]
    run = make_run(rows, health=[second(1, **STALLED), *(second(n) for n in range(2, 30))])
    text = printed(run)
    assert "Note: The harness was the bottleneck in 1 of " in text
    assert "1 of 21 measured requests were under way then, and are left out of all times" in text
    assert "Problem: harness health" not in text
    (of_target,) = run.by_target()
    (flag,) = (one for one in flags(summarise(of_target)) if one.key == "bottleneck")
    assert flag.verdict == "open"
    (told,) = json.loads(as_json([run]))["runs"][0]["targets"]
    assert "harness health" not in [one["name"] for one in told["problems"]]


def test_a_marked_second_in_which_nothing_was_under_way_costs_no_request(make_run: MakeRun) -> None:
    text = printed(make_run([ROWS[0], ROWS[3]], health=HEALTH))
    assert "(1 stall); no measured request was under way then" in text


def test_a_run_recorded_without_the_table_says_so_and_counts_all(make_run: MakeRun) -> None:
    run = make_run(ROWS)
    assert len(run.counted) == 4
    text = printed(run)
    assert "Problem: harness health" not in text
    assert "harness health - (harness health was not recorded)" in " ".join(text.split())


def test_only_seconds_and_requests_of_a_target_count_for_it(make_run: MakeRun) -> None:
    """The second target has its turn after the first; the master has no requests."""
    rows = [sent(0.2, 0.8), sent(5.2, 5.8, target="b", request_id="b")]
    health = [second(0), second(1), second(5, **STALLED), second(0, -1, **STALLED)]
    run = make_run(rows, health=health, targets=[target(), target("b")])
    first, last = (summarise(one).health for one in run.by_target())

    assert (first.seconds, first.marked, first.requests, first.measured) == (1, (), 0, 1)
    assert (last.seconds, [mark.why for mark in last.marked], last.requests, last.measured) == (1, ["stall"], 1, 1)
    assert left_out(run) == ["b"]
