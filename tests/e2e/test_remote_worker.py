"""A worker on a machine that does not see the master's directory sends its rows through Locust's own connection."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.analysis import load
from harness.launch import free_port
from tests.e2e.conftest import CHAT, ROOT, Locust, SlowServer


def test_rows_of_a_worker_without_the_directory_arrive(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow, port = slow_server(0.2), str(free_port())
    # /proc/self is another folder for each process: the URL that the master writes to leads the worker nowhere.
    results = "file:///proc/self/cwd/results/elsewhere"
    worker_folder = tmp_path / "another-machine"
    worker_folder.mkdir()
    worker = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "locust",
            "-f",
            ROOT / "locustfiles" / "multi_round.py",
            "--worker",
            "--master-port",
            port,
        ],
        cwd=worker_folder,
    )
    try:
        words = ["--scenario", scenario(CHAT), "--target", slow.url, "--users", 4, "--spawn-rate", 4]
        words += ["--headless", "--run-time", "4s", "--master", "--expect-workers", 1]
        words += ["--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--results", results]
        code, output = start_locust("multi_round.py", *words, cwd=tmp_path).wait()
        assert code == 0, output
        worker.wait(30)
    finally:
        worker.kill()
        worker.wait()
    run = load("latest", tmp_path / "results" / "elsewhere")
    assert run.manifest.state == "complete"
    assert len(run.measured) >= 8
    assert sorted(run.measured.request_id) == sorted(slow.asked)
    assert not list(worker_folder.iterdir())
