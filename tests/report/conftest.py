"""Small recorded runs, whose every number is known by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import load
from harness.analysis.pages import replicas
from harness.record.manifest import MetricNames, Phase
from harness.record.reader import RecordedRun, open_run
from harness.report.source import Source
from tests.analysis.rows import CACHED, PROMPT, Row, request, sample, target
from tests.recorded import write_run

S = 1_000_000_000
MS = 1_000_000

RUNNING = MetricNames(meaning="running_requests", names=("running",), kind="gauge", counts="requests")
KV = MetricNames(meaning="kv_usage", names=("kv",), kind="gauge", counts="share")
GENERATED = MetricNames(meaning="generated_tokens", names=("made_total",), kind="counter", counts="tokens")
METRICS = [CACHED, PROMPT, RUNNING, KV, GENERATED]

MakeRecord = Callable[..., RecordedRun]


def sent(session: int, turn: int, at_s: float, prompt: int, cached: int | None, ttft_ms: float, **changes: Any) -> Row:
    """Sent `at_s` seconds after second 100; it ends a second later. All prompts begin alike."""
    start = round((100 + at_s) * S)
    row = request(
        session=session, turn=turn, warmth="warm" if turn else "cold", request_id=f"{session}-{turn}", t_due=start,
        t_send=start, t_first=start + round(ttft_ms * MS), t_last=start + S, t_end=start + S, prompt_tokens=prompt,
        planned_prompt_tokens=prompt, cached_tokens=cached, output_tokens=50, ttft_ms=ttft_ms, ttft_due_ms=ttft_ms,
        tpot_ms=ttft_ms / 10, e2e_ms=1_000.0, late_ms=0.5, path=[1], path_tokens=[prompt], chunks=1, clock="kernel",
    )  # fmt: skip
    return row | changes


def scrapes(name: str, values: dict[float, float], **changes: Any) -> list[Row]:
    """Seconds after second 100 -> value."""
    return [sample(name, value, round((100 + at_s) * S), "periodic", **changes) for at_s, value in values.items()]


@pytest.fixture
def make_record(tmp_path: Path) -> MakeRecord:
    """make_record(requests, samples, health, **changes of run.json) -> the run."""
    numbers = itertools.count(1)

    def make(
        requests: Iterable[Row], samples: Iterable[Row] = (), health: Iterable[Row] = (), **changes: Any
    ) -> RecordedRun:
        fields: dict[str, Any] = {
            "started_ns": 100 * S, "ended_ns": 120 * S, "scenario": {"kind": "agent-loop"},
            "targets": [target(metrics=METRICS)],
            "phases": [Phase(phase="measure", targets=("t",), start_ns=100 * S, end_ns=110 * S)],
        }  # fmt: skip
        return open_run(write_run(tmp_path, f"run-{next(numbers)}", requests, samples, health, **fields | changes))

    return make


@pytest.fixture
def source(make_record: MakeRecord) -> Callable[..., Source]:
    """The rows of target t of a run of these requests, samples and seconds."""

    def of(*tables: Iterable[Row], all_requests: bool = False) -> Source:
        run = load(make_record(*tables), all_requests=all_requests).only_target()
        return Source(run, replicas(run.samples, run.target))

    return of
