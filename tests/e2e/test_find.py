"""`kvswarm find` on a simulated engine whose capacity is known: a run for each look, a table, the answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.analysis import load
from harness.embedded.server import running_server
from harness.sim.hardware import PRESETS
from harness.sim.options import SimOptions
from tests.e2e.conftest import ROOT

ONE_SHOT = """
name: one-shot
kind: multi-round
system_tokens: 16
preamble_tokens: 180
rounds: 1
user_tokens: 16
output_tokens: 2
"""
TIME_SCALE = 4
SLO = "ttft_p80<100ms"


def test_the_rate_that_is_found_is_below_one_over_the_service_time(
    scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    """One slot and no prefix cache: with even arrivals nobody waits, or the queue grows from the first second on."""
    options = SimOptions(
        manner="llama-cpp", preset="cpu", slots=1, kv_tokens=2048, prefix_caching=False, time_scale=TIME_SCALE
    )
    with running_server(options) as server:
        command = [sys.executable, "-m", "harness.cli", "find", scenario(ONE_SHOT), "--target", server.target]
        command += ["--slo", SLO, "--arrivals", "constant", "--rate-from", 20, "--rate-to", 60, "--precision", 2]
        command += ["--run-time", "3s", "--workers", 0, "--users", 400, "--results", tmp_path / "results"]
        command += ["--warm-up-requests", 0]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    note = json.loads((folder / "find.json").read_text())
    tokens = load(note["looks"][0]["run"], folder).measured.prompt_tokens.max()
    cost = PRESETS["cpu"].cost
    prefill_s = cost.duration_s(tokens, 0, tokens * (tokens + 1) // 2)
    capacity = TIME_SCALE / (prefill_s + cost.duration_s(1, tokens, tokens + 1))
    assert 20 < capacity < 60
    assert (note["answer"]["met"], note["answer"]["not_met"]) == (20, 60)
    assert note["answer"]["goodput_share"] > 0.8
    by_rate = {look["rate"]: look for look in note["looks"]}
    assert list(by_rate) == [20, 60]
    for rate, look in by_rate.items():
        run = load(look["run"], folder)
        assert (run.manifest.options["load"], float(run.manifest.options["rate"])) == ("open", rate)
        assert look["limits"][0]["of"] <= len(run.requests)
    assert f"Up to 20 sessions/s meet {SLO}." in done.stdout
    page = (folder / "report.html").read_text()
    assert "The sweep over rate" in page
    assert "goodput/s</a>" in page
    assert "With 95% confidence" in done.stdout
