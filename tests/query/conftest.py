"""A small run on disk, whose every number is known by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.record.manifest import MetricNames, Phase
from tests.analysis.rows import Row, request, sample, second, target
from tests.recorded import write_run

S = 1_000_000_000

RUNNING = MetricNames(meaning="running_requests", names=("running",), kind="gauge", counts="requests")


def sent(session: int, turn: int, at_s: int, prompt: int, cached: int | None, ttft_ms: float | None = None) -> Row:
    """Ends 1 s after it was sent; its TTFT is 20 ms and 0.1 ms for each token that was computed."""
    time_ms = 20 + 0.1 * (prompt - (cached or 0)) if ttft_ms is None else ttft_ms
    return request(
        session=session, turn=turn, warmth="warm" if turn else "cold", t_due=at_s * S, t_send=at_s * S,
        t_end=(at_s + 1) * S, prompt_tokens=prompt, cached_tokens=cached, output_tokens=50, ttft_ms=time_ms,
        request_id=f"{session}-{turn}",
    )  # fmt: skip


REQUEST_ROWS = [
    sent(0, 0, 101, 1_000, 0),  # 120 ms
    sent(0, 1, 103, 1_200, 960),  # 44 ms
    sent(0, 2, 108, 1_400, 0),  # 160 ms: it had lost its prefix after 4 s
    sent(1, 0, 102, 500, 0),  # 70 ms
    sent(1, 1, 104, 700, 400),  # 50 ms
    sent(1, 2, 106, 900, None) | {"status": "timeout", "ttft_ms": None, "output_tokens": None, "error": "too slow"},
    sent(2, 0, 105, 800, None),  # 100 ms
    request(phase="check", kind=None, warmth=None, request_id="c", ttft_ms=9_999.0, prompt_tokens=9, cached_tokens=9),
]
SCRAPES = [
    sample("running", value, at_s * S, "periodic", type="gauge") for at_s, value in ((100, 1.0), (103, 2.0), (107, 1.0))
]


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Path]:
    """record(run_id, requests, health, **changes of run.json) -> the run's directory."""

    def make(
        run_id: str = "r1", rows: Iterable[Row] = REQUEST_ROWS, health: Iterable[Row] = (), **changes: Any
    ) -> Path:
        fields: dict[str, Any] = {
            "started_ns": 100 * S, "options": {"users": 2},
            "scenario": {"kind": "agent-loop", "seed": 7, "pressure": 0.5}, "targets": [target(metrics=[RUNNING])],
            "phases": [Phase(phase="measure", targets=("t",), start_ns=100 * S, end_ns=110 * S)],
        }  # fmt: skip
        return Path(write_run(tmp_path, run_id, rows, SCRAPES, health, **fields | changes))

    return make


@pytest.fixture
def health() -> list[Row]:
    """Second 103 is one in which the worker was the bottleneck."""
    return [second(102), second(103, cpu_share=0.95), second(104)]
