"""Master and workers killed in the middle of a run: what their parts hold is a record after `kvswarm repair`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.record.repair import repair
from tests.e2e.conftest import CHAT, ROOT, Locust, SlowServer
from tests.waiting import wait_until

# Parts are written every 15 seconds; a test need not wait so long.
LOCUSTFILE = """
import harness.swarm.worker
harness.swarm.worker.FLUSH_EVERY_S = 0.3
from harness.swarm import SessionUser, install
install(scenario="multi-round")
class Session(SessionUser):
    pass
"""


def kvswarm(*words: object) -> str:
    """What it printed, in lines so long that no path is broken."""
    command, env = [sys.executable, "-m", "harness.cli", *map(str, words)], {**os.environ, "COLUMNS": "500"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_run_whose_processes_were_all_killed_is_readable_up_to_its_last_parts(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(0.05)
    locustfile = tmp_path / "locustfile.py"
    locustfile.write_text(LOCUSTFILE)
    words = ["--scenario", scenario(CHAT), "--target", slow.url, "--headless", "--users", 4, "--spawn-rate", 4]
    locust = start_locust(str(locustfile), *words, workers=2)
    results = tmp_path / "results"
    wait_until(lambda: len({path.name[:11] for path in results.glob("*/requests/part-0-*.parquet")}) == 2)
    os.killpg(locust.process.pid, signal.SIGKILL)
    locust.wait()
    (folder,) = results.iterdir()

    assert f"repair {folder}" in kvswarm("report", folder)
    said = kvswarm("repair", folder)
    assert "rows of requests" in said
    assert "the run is incomplete" in said
    run = load(folder)
    assert run.manifest.state == "incomplete"
    assert run.manifest.targets[0].cold_start.startswith("nonce")  # known before the load, and written then
    assert run.manifest.targets[0].check is not None
    assert set(run.measured.worker) == {0, 1}
    assert set(run.measured.request_id) <= set(slow.asked)
    assert sum(part.rows for part in run.manifest.parts.requests) == len(run.requests)
    assert not repair(folder).changed
    assert summarise(run.by_target()[0]).groups[0].requests > 0
