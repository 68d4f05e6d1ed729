"""`kvswarm sweep` and `kvswarm cost-of` on a real llama.cpp server: a run for each variant, one folder, one table."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.analysis import load
from harness.analysis.cost import cost
from harness.embedded.server import RunningServer
from tests.e2e.conftest import AGENT, ROOT

SCRIPTED = AGENT.replace("replies: live", "replies: scripted")


def kvswarm(*words: object, results: Path, users: int | None = 1) -> str:
    """What it printed; it must end well."""
    command = [sys.executable, "-m", "harness.cli", *map(str, words)]
    command += ["--workers", "1", "--run-time", "4s", "--results", str(results)]
    command += ["--users", str(users)] if users else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_sweep_is_a_folder_of_runs_with_one_key_changed(
    llama_cpp: RunningServer, scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--target", llama_cpp.url, "--over", "steps=2,4", "--set", "seed=5")
    output = kvswarm("sweep", scenario(SCRIPTED), *options, results=tmp_path)
    assert "hit rate" in output
    (folder,) = tmp_path.glob("*-sweep-*")
    note = json.loads((folder / "sweep.json").read_text())
    assert (folder / "sweep.svg").read_text().startswith("<svg")
    assert "run 2: 01-steps-4" in (folder / "report.html").read_text()
    assert (note["setting"], list(note["runs"])) == ("steps", ["2", "4"])
    for value, run_id in note["runs"].items():
        run = load(run_id, folder)
        assert run.manifest.state == "complete"
        assert (run.manifest.scenario["steps"], run.manifest.scenario["seed"]) == (int(value), 5)
        assert run.measured.turn.max() == int(value) - 1


def test_a_fault_costs_what_stands_behind_it(
    llama_cpp: RunningServer, scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    output = kvswarm(
        "cost-of", "timestamp-first", scenario(SCRIPTED), "--target", llama_cpp.url, "--no-report", results=tmp_path
    )
    assert "timestamp-first in 100% of the requests: the token hit rate goes from" in output
    (folder,) = tmp_path.glob("*-cost-of-*")
    runs = json.loads((folder / "sweep.json").read_text())["runs"]
    without, with_fault = (load(run_id, folder).only_target() for run_id in runs.values())
    assert set(with_fault.measured.fault) == {"timestamp-first"}
    assert without.measured.fault.isna().all()
    both = cost(without, with_fault)
    assert both.requests >= 2  # a cold one and a warm one at least: how many more depends on the machine
    assert both.rate_before is not None
    assert both.rate_after is not None
    assert both.rate_after < 0.1 < both.rate_before


def test_pressure_by_running_sessions_starts_as_many_users(
    llama_cpp: RunningServer, scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--target", llama_cpp.url, "--over", "pressure=1,2", "--set", "capacity_tokens=1500", "--no-report")
    kvswarm("sweep", scenario(SCRIPTED), *options, results=tmp_path, users=None)
    (folder,) = tmp_path.glob("*-sweep-*")
    runs = [load(run_id, folder) for run_id in json.loads((folder / "sweep.json").read_text())["runs"].values()]
    asked = [run.manifest.scenario["running_sessions"] for run in runs]
    assert [run.measured.user.nunique() for run in runs] == asked
    assert 1 < asked[0] < asked[1]
