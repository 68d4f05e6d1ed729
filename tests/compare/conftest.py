"""Small recorded runs of one workload, each with texts of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.record.manifest import TargetRecord
from tests.analysis.rows import Row, request, target
from tests.recorded import write_run

IDENTITY = {
    "engine": "vllm", "version": "0.27", "model": "m", "kv_dtype": "bf16", "tokenizer_fingerprint": "aaaa",
    "template_fingerprint": "bbbb", "details": {"scheduler": "fcfs"},
}  # fmt: skip
SCENARIO = {"name": "demo", "kind": "agent-loop", "seed": 1, "steps": 2, "replies": "scripted"}
OPTIONS = {"load": "closed", "users": 4, "run_time_s": 30.0, "target": "t"}
SESSIONS = 25


def turn(session: int, number: int, ttft_ms: float = 100.0, nonce: int = 0, **changes: Any) -> Row:
    """A turn of a session: a system prompt that all share, then one segment a turn, and the template around them. One
    session follows the other."""
    path = [7, nonce + 1, *(nonce + 100 * session + 10 + step for step in range(number + 1))]
    levels = ["chat template", "system prompt", *["user message"] * (number + 1)]
    slower = 1 + session / 100
    row = request(
        session=session, turn=number, request_id=f"{session}-{number}", warmth="warm" if number else "cold",
        path=path, path_tokens=[3, 50, *[20] * (number + 1)], path_levels=levels, planned_output_tokens=8,
        prompt_tokens=100, cached_tokens=60 if number else 0, ttft_ms=ttft_ms * slower, tpot_ms=10.0, e2e_ms=900.0,
        t_due=(2 * session + number) * 1_000_000_000, t_send=(2 * session + number) * 1_000_000_000,
    )  # fmt: skip
    return row | changes


def turns(ttft_ms: float = 100.0, nonce: int = 0, sessions: int = SESSIONS, **changes: Any) -> list[Row]:
    return [turn(session, number, ttft_ms, nonce, **changes) for session in range(sessions) for number in (0, 1)]


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., str]:
    """record(run_id, rows, targets, scenario, options, identity, health, **changes of run.json) -> its directory."""

    def make(
        run_id: str,
        rows: Sequence[Row] | None = None,
        *,
        scenario: Row | None = None,
        options: Row | None = None,
        identity: Row | None = None,
        targets: Sequence[TargetRecord] | None = None,
        health: Sequence[Row] = (),
        **changes: Any,
    ) -> str:
        fields: dict[str, Any] = {
            "started_ns": 1, "options": OPTIONS | (options or {}), "scenario": SCENARIO | (scenario or {}),
            "targets": targets or [target(identity=IDENTITY | (identity or {}))],
        }  # fmt: skip
        return write_run(tmp_path, run_id, turns() if rows is None else rows, health=health, **fields | changes)

    return make
