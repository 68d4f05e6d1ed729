"""`kvswarm trace export`: what a run sent comes back with its sharing, and can be replayed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cache.prompt import items
from harness.errors import InputError
from harness.record.manifest import Manifest, TargetRecord
from harness.record.reader import RecordedRun, open_run
from harness.record.run_directory import create
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.traces.export import export_run
from harness.traces.reading import read_trace
from harness.traces.request import Skipped, Trace, TraceRequest
from harness.traces.reuse import Reuse, reuse_of
from harness.workload.scenario import Replay
from harness.workload.template import Template
from harness.workload.workload import Workload
from tests.workload.samples import multi_round, scripted_prompts

MS = 1_000_000
WORDS = 16
"""Those of the lexicon: 16 of them spell a content id."""
TEMPLATE = Template(
    opener_tokens=1,
    head={"system": 3},
    between=dict.fromkeys(("system>user", "user>assistant", "assistant>user"), 5),
    tail={"system": 4},
    head_known=True,
    reply_after_tail=False,
)
Row = dict[str, Any]


def row(**changes: Any) -> Row:
    values: Row = dict.fromkeys(REQUESTS.names)
    values |= {"run_id": "r1", "target": "here", "engine": "e", "model": "m", "scenario": "s", "phase": "measure"}
    values |= {"worker": 0, "request_id": "q", "t_due": 1, "t_send": 1, "status": "ok", "session": 0}
    values |= {"output_tokens": 4, "path": [1], "path_tokens": [40], "chunks": 0, "coalesced": 0, "bytes": 0}
    return values | changes


def chats(sessions: int = 12) -> list[Row]:
    """Rows of chats as a run records them, a turn every 7 ms; sessions interleaved, written in another order."""
    workload = Workload(multi_round(rounds=3), "n")
    rows = []
    for number in range(sessions):
        session = workload.session(number)
        for turn, prompt in zip(session.turns, scripted_prompts(session), strict=True):
            path = TEMPLATE.path(prompt)
            rows.append(
                row(
                    session=number,
                    turn=turn.index,
                    t_send=(1_000 + 7 * (turn.index * sessions + number)) * MS,
                    output_tokens=turn.output_tokens,
                    path=[segment.content_id for segment in path],
                    path_tokens=[segment.tokens for segment in path],
                )
            )
    return rows


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., RecordedRun]:
    """A run of these rows, in tmp_path/results/r1."""

    def record(rows: list[Row], targets: tuple[str, ...] = ("here",)) -> RecordedRun:
        directory = create(tmp_path / "results", "r1")
        writer = PartWriter(directory.url, "requests/part-0000", REQUESTS)
        for one in rows:
            writer.add(one)
        writer.flush()
        records = [
            TargetRecord(name=name, target={}, identity={}, metrics=[], advice={}, lexicon={"words": WORDS})
            for name in targets
        ]
        manifest = Manifest(
            kvswarm_version="0.1.0",
            run_id="r1",
            state="complete",
            started_ns=1,
            options={},
            scenario_name="s",
            scenario={},
            targets=records,
            versions={},
        )
        manifest.add_parts("requests", writer.parts)
        directory.write_manifest(manifest)
        return open_run(tmp_path / "results" / "r1")

    return record


def written(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def reuse(trace: Trace, block_tokens: int) -> Reuse:
    return replace(reuse_of(trace, block_tokens)[0], trace="", format="", notes=())


def trace_of(requests: list[TraceRequest]) -> Trace:
    return Trace("", "", 1, requests, Skipped(0, None))


@pytest.mark.parametrize("block_tokens", [16, 5])
def test_what_a_run_shared_is_what_its_trace_shares(
    recorded: Callable[..., RecordedRun], tmp_path: Path, block_tokens: int
) -> None:
    rows = chats()
    (one,) = export_run(recorded(rows), tmp_path / "out.jsonl", block_tokens)
    assert (one.path, one.target, one.requests) == (tmp_path / "out.jsonl", "here", 36)
    read = read_trace(one.path, mooncake_block_tokens=block_tokens)
    sent = sorted(rows, key=lambda each: int(each["t_send"]))
    by_paths = trace_of(
        [
            TraceRequest(
                (each["t_send"] - sent[0]["t_send"]) / (1000 * MS),
                items(each["path"], each["path_tokens"], WORDS),
                each["output_tokens"],
            )
            for each in sent
        ]
    )
    found = reuse(read, block_tokens)
    assert found == reuse(by_paths, block_tokens)
    assert found.infinite.hit_rate > 0.3
    assert [request.session for request in read.requests[:13]] == [*map(str, range(12)), "0"]


def test_a_replay_of_an_exported_run_plans_its_sharing(recorded: Callable[..., RecordedRun], tmp_path: Path) -> None:
    (one,) = export_run(recorded(chats()), tmp_path / "out.jsonl", 16)
    read = read_trace(one.path, mooncake_block_tokens=16)
    scenario = Replay.model_validate({"name": "again", "kind": "replay", "trace": str(one.path), "block_tokens": 16})
    workload = Workload(scenario, "n")
    turns = [turn for number in range(12) for turn in workload.session(number).turns]
    turns.sort(key=lambda turn: turn.due_s or 0.0)
    played = [
        TraceRequest(
            turn.due_s, [(each.content_id, each.tokens) for each in turn.question.segments], turn.output_tokens
        )
        for turn in turns
    ]
    assert reuse(trace_of(played), 16) == reuse(read, 16)
    assert [len(workload.session(number).turns) for number in range(12)] == [3] * 12


def test_lengths_and_times_are_those_of_the_rows(recorded: Callable[..., RecordedRun], tmp_path: Path) -> None:
    rows = [
        row(t_send=5_000 * MS, path=[1, 2], path_tokens=[30, 10]),
        row(t_send=5_250 * MS, session=None, path=[1, 3], path_tokens=[30, 3], output_tokens=None, status="timeout")
        | {"planned_output_tokens": 9},
    ]
    export_run(recorded(rows[::-1]), tmp_path / "out.jsonl", 16)
    first, second = written(tmp_path / "out.jsonl")
    assert first == {
        "timestamp": 0, "input_length": 40, "output_length": 4, "hash_ids": [0, 1, 2], "session_id": "0"
    }  # fmt: skip
    assert second["timestamp"] == 250
    assert second["input_length"] == 33
    assert second["output_length"] == 9
    assert second["hash_ids"][0] == 0
    assert "session_id" not in second


def test_words_that_texts_share_by_accident_are_shared(recorded: Callable[..., RecordedRun], tmp_path: Path) -> None:
    alike = [
        0x123456789,
        0x923456789,
    ]  # in a lexicon of 16 words an id spells its hexadecimal digits, the last one first
    rows = [row(path=[identity], path_tokens=[24], t_send=at) for at, identity in enumerate(alike)]
    export_run(recorded(rows), tmp_path / "out.jsonl", 8)
    assert [one["hash_ids"] for one in written(tmp_path / "out.jsonl")] == [[0, 1, 2], [0, 3, 4]]


def test_only_measured_requests_that_were_sent_are_written(
    recorded: Callable[..., RecordedRun], tmp_path: Path
) -> None:
    rows = [row(phase="check"), row(phase="warmup"), row(t_send=None, status="refused"), row(path_tokens=[17])]
    (one,) = export_run(recorded(rows), tmp_path / "out.jsonl", 16)
    assert one.requests == 1
    assert [each["input_length"] for each in written(one.path)] == [17]


def test_each_target_gets_a_file_with_times_of_its_own(recorded: Callable[..., RecordedRun], tmp_path: Path) -> None:
    rows = [row(target="b/c", t_send=9 * MS), row(target="127.0.0.1:80", t_send=500 * MS, path_tokens=[17])]
    run = recorded(rows, ("127.0.0.1:80", "b/c"))
    both = export_run(run, tmp_path / "out.jsonl", 16)
    assert [(one.path.name, one.target) for one in both] == [
        ("out-127.0.0.1:80.jsonl", "127.0.0.1:80"),
        ("out-b%2Fc.jsonl", "b/c"),
    ]
    assert [written(one.path)[0]["timestamp"] for one in both] == [0, 0]
    (named,) = export_run(run, tmp_path / "one.jsonl", 16, "127.0.0.1:80")
    assert named.path == tmp_path / "one.jsonl"
    assert [each["input_length"] for each in written(named.path)] == [17]


def test_what_cannot_be_written_is_told(recorded: Callable[..., RecordedRun], tmp_path: Path) -> None:
    run = recorded([row()], ("here", "there"))
    with pytest.raises(InputError, match="has no target nowhere; it has here, there"):
        export_run(run, tmp_path / "out.jsonl", 16, "nowhere")
    with pytest.raises(InputError, match="has no measured request to there"):
        export_run(run, tmp_path / "out.jsonl", 16, "there")
    with pytest.raises(InputError, match=r"none/out\.jsonl: cannot be written: No such file"):
        export_run(run, tmp_path / "none" / "out.jsonl", 16, "here")


def test_as_a_user_types_it(recorded: Callable[..., RecordedRun], tmp_path: Path) -> None:
    recorded(chats(2))

    def typed(*words: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "harness.cli", "trace", "export", *map(str, words)]
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": root}
        return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment)

    done = typed("latest", "out.jsonl", "--block", 8)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out.jsonl: 6 requests to here in blocks of 8 tokens (--trace-block 8")
    assert len(read_trace(tmp_path / "out.jsonl", mooncake_block_tokens=8).requests) == 6
    page = (Path(__file__).parents[2] / "docs" / "traces.md").read_text().split("## Export\n")[1].split("\n## ")[0]
    options = set(re.findall(r"--[a-z][a-z-]+", typed("--help").stdout)) - {"--help"}
    assert set(re.findall(r"^\| `(--[a-z-]+)", page, re.MULTILINE)) == options
    refused = typed("r2", "out.jsonl")
    assert refused.returncode == 2
    assert refused.stderr.startswith("kvswarm: There is no run 'r2'")
    assert len(refused.stderr.splitlines()) == 1
