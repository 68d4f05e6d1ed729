"""A worker on a machine that does not see the master's directory sends its rows through Locust's own connection."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.analysis import load
from harness.embedded.process import free_port
from tests.e2e.conftest import CHAT, ROOT, Locust, SlowServer, wait_until


@contextmanager
def worker(port: str, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process as on another machine, for as long as the block runs."""
    locustfile = ROOT / "locustfiles" / "multi_round.py"
    command = [sys.executable, "-m", "locust", "-f", str(locustfile), "--worker", "--master-port", port]
    process = subprocess.Popen(command, cwd=cwd)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def master(port: str) -> list[object]:
    bind = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port]
    return ["--headless", "--users", 4, "--spawn-rate", 4, "--master", "--expect-workers", 1, *bind]


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
    with worker(port, worker_folder) as process:
        words = [*master(port), "--scenario", scenario(CHAT), "--target", slow.url, "--run-time", "4s"]
        code, output = start_locust("multi_round.py", *words, "--results", results, cwd=tmp_path).wait()
        assert code == 0, output
        process.wait(30)
    run = load("latest", tmp_path / "results" / "elsewhere")
    assert run.manifest.state == "complete"
    assert len(run.measured) >= 8
    assert sorted(run.measured.request_id) == sorted(slow.asked)
    assert not list(worker_folder.iterdir())


def test_a_worker_that_joins_during_a_run_makes_it_incomplete(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow, port = slow_server(0.2), str(free_port())
    with worker(port, ROOT):
        words = [*master(port), "--scenario", scenario(CHAT), "--target", slow.url, "--run-time", "12s"]
        locust = start_locust("multi_round.py", *words)
        wait_until(lambda: len(slow.asked) >= 4)
        with worker(port, ROOT):
            code, output = locust.wait()
    assert code == 3, output
    run = load("latest", tmp_path / "results")
    assert any("joined during the run" in problem for problem in run.problems)
    assert sorted(run.measured.request_id) == sorted(slow.asked)
