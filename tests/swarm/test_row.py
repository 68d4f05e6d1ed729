"""A request's row: all columns of the table, and lags from the time when it was due."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.client.reply import Reply
from harness.client.row import Asked, request_row, warmth
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.workload.session import Segment
from harness.workload.workload import Workload
from tests.swarm.fakes import LABELS, MS, reply, unsent
from tests.workload.samples import agent_loop

PATH = [Segment("shared", 11, 40, tree_level="tenant"), Segment("user", -5, 60)]
SESSION = Workload(agent_loop(output_tokens=8), "n").session(4)


def row(answer: Reply, turn: int = 0, free_ns: int = 980 * MS) -> dict[str, Any]:
    """The row of a request that was due at 990 ms."""
    asked = Asked("r1-1-4-0", 990 * MS, free_ns, PATH, 8, 2, SESSION.number, turn, warmth(SESSION.turns[turn]), slot=1)
    return request_row(LABELS, asked, answer)


def test_a_row_has_the_columns_of_the_table_and_can_be_written(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path, "requests/part", REQUESTS)
    rows = [row(reply()), row(unsent("connect_error", "nothing listens"), turn=1)]
    for one in rows:
        assert list(one) == REQUESTS.names
        writer.add(one)
    writer.flush()
    assert writer.parts == [("requests/part-00000.parquet", 2)]


def test_a_row_says_whose_request_it_is_and_what_was_planned() -> None:
    first, later = row(reply()), row(reply(), turn=1)
    assert (first["run_id"], first["worker"], first["user"], first["session"], first["turn"]) == ("r1", 3, 2, 4, 0)
    assert (first["target"], first["slot"], first["cache_salt"]) == ("here", 1, None)
    assert (first["warmth"], later["warmth"]) == ("cold", "warm")
    assert (first["planned_prompt_tokens"], first["planned_output_tokens"]) == (100, 8)
    assert (first["path"], first["path_tokens"]) == ([11, -5], [40, 60])
    assert first["path_levels"] == ["tenant", "user message"]
    assert (first["prompt_tokens"], first["cached_tokens"]) == (100, 64)


def test_a_request_of_no_session_can_be_written(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path, "requests/part", REQUESTS)
    labels = replace(LABELS, kind=None, phase="check", worker=-1)
    writer.add(request_row(labels, Asked("r1-1-check-cold", 990 * MS, 990 * MS, PATH, 1), reply()))
    writer.flush()
    assert writer.parts == [("requests/part-00000.parquet", 1)]


def test_what_the_user_waited_counts_from_the_time_it_was_due() -> None:
    sent = row(reply())
    assert sent["ttft_ms"] == 30.0
    assert sent["ttft_due_ms"] == 40.0
    assert (sent["lag_ms"], sent["blocked_ms"], sent["late_ms"]) == (10.0, 0.0, 10.0)


def test_what_is_not_known_is_null() -> None:
    lost = row(unsent("connect_error", "nothing listens"))
    assert (lost["status"], lost["error"]) == ("connect_error", "nothing listens")
    unknown = ["t_send", "t_first", "lag_ms", "blocked_ms", "late_ms", "ttft_due_ms", "cached_tokens", "http_status"]
    assert [lost[column] for column in unknown] == [None] * len(unknown)


def test_a_stepped_clock_makes_no_durations() -> None:
    stepped = row(reply(clock_stepped=True, ttft_ms=None))
    assert stepped["t_first"] == 1_030 * MS
    assert stepped["lag_ms"] is stepped["blocked_ms"] is stepped["late_ms"] is stepped["ttft_due_ms"] is None


def test_what_passed_until_its_user_was_free_is_not_the_harness_being_late() -> None:
    sent = row(reply(), free_ns=997 * MS)
    assert (sent["lag_ms"], sent["blocked_ms"], sent["late_ms"]) == (10.0, 7.0, 3.0)
