"""`kvswarm find` without a server: what it runs, what it prints and leaves, and how it exits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness.find
from harness.analysis import load
from harness.analysis.run import TargetRun
from harness.errors import InputError
from harness.find import NOT_MET, UNDECIDED, find
from harness.find_command_line import seconds
from harness.launch import Swarm
from harness.record.manifest import Phase
from harness.record.storage import Folder
from harness.slo.search import Plan
from tests.analysis.rows import request
from tests.recorded import write_run

PLAN = Plan(lowest=2, highest=32, precision=0.5, confidence=0.9, length_s=10, looks=2)
SLO = "ttft_p90<500ms"


class Server:
    """Its requests are fast up to a rate, and slow above it."""

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.told: list[Swarm] = []

    def run_into(self, folder: Folder, run_id: str, swarm: Swarm) -> TargetRun:
        self.told.append(swarm)
        rate, length_s = float(swarm.extra[swarm.extra.index("--rate") + 1]), float(swarm.run_time.removesuffix("s"))
        ttft_ms = 100.0 if rate <= self.capacity else 900.0
        rows = [
            request(session=number, turn=0, request_id=str(number), ttft_ms=ttft_ms, t_due=due, t_send=due)
            for number, due in enumerate(range(0, round(rate * length_s) * 1_000, 1_000))
        ]
        phase = Phase(phase="measure", targets=("t",), start_ns=0, end_ns=round(length_s * 1e9))
        return load(write_run(folder.url, run_id, rows, phases=[phase])).only_target()


def search(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capacity: float, plan: Plan = PLAN
) -> tuple[int, Server, dict[str, Any]]:
    """Exit code, what was run, and find.json."""
    server = Server(capacity)
    monkeypatch.setattr(harness.find, "run_into", server.run_into)
    swarm = Swarm("demo", "http://t/v1", results=str(tmp_path), extra=("--warm-up", "2s"))
    code = find(swarm, SLO, plan, "constant", "found")
    return code, server, json.loads((tmp_path / "found" / "find.json").read_text())


def test_the_answer_is_printed_and_kept_with_every_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, server, note = search(monkeypatch, tmp_path, 20)
    assert code == 0
    assert [look["rate"] for look in note["looks"]] == [2, 8, 32, 16, 22.63]
    answer = {"met": 16, "not_met": 22.63, "undecided": [2], "goodput_per_s": 16.0, "goodput_share": 1.0}
    assert note["answer"] == answer
    assert [look["verdict"] for look in note["looks"]] == ["undecided", "met", "not met", "met", "not met"]
    assert note["looks"][3]["limits"][0]["of"] == 160
    assert note["looks"][3]["limits"][0]["share_high"] < 0.1 < note["looks"][4]["limits"][0]["share_low"]
    options = " ".join(server.told[3].extra)
    assert "--warm-up 2s --load open --arrivals constant --load open --rate 16" in options
    assert (server.told[3].run_time, "--exit-code-on-error 0" in options) == ("10s", True)
    said = " ".join(capsys.readouterr().out.split())
    assert f"Up to 16 sessions/s meet {SLO}." in said
    assert "Goodput at that rate: 16.00 requests/s meet every limit, 100.0 % of all." in said
    assert "22.63 sessions/s do not meet it." in said
    assert "With 90% confidence" in said


def test_a_server_that_is_too_slow_at_any_rate_is_told_from_too_few_requests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(monkeypatch, tmp_path / "slow", 1)[0] == NOT_MET
    said = " ".join(capsys.readouterr().out.split())
    assert f"No rate from 2 to 32 sessions/s was shown to meet {SLO}. 2 sessions/s do not meet it." in said
    few = replace(PLAN, highest=4, length_s=1, looks=1)
    assert search(monkeypatch, tmp_path / "short", 2, few)[0] == UNDECIDED
    assert "2 sessions/s; a longer --run-time may decide" in " ".join(capsys.readouterr().out.split())


def test_a_bad_objective_ends_it_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        find(Swarm("demo", "http://t/v1", results=str(tmp_path)), "ttft_p99<500", PLAN, "poisson", "found")
    assert list(tmp_path.iterdir()) == []


def test_times_of_a_look() -> None:
    assert [seconds(text) for text in ("30s", "2m", "1m30s", "0.5h")] == [30, 120, 90, 1800]
    for text in ("", "30", "fast", "1m 30"):
        with pytest.raises(InputError, match="expected a time"):
            seconds(text)
