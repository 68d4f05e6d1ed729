"""A worker on a machine that does not see the master's directory sends its rows through Locust's own connection."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from harness.analysis import load
from harness.analysis.run import Run
from harness.embedded.process import free_port
from tests.e2e.conftest import CHAT, ROOT, Locust, SlowServer
from tests.waiting import wait_until


def of_the_load(run: Run) -> pd.DataFrame:
    """Its requests, but for the master's own."""
    return run.requests[run.requests.phase.isin(["ramp", "measure"])]


@contextmanager
def worker(port: str, cwd: Path, checkout: Path = ROOT) -> Iterator[subprocess.Popen[str]]:
    """A worker process as on another machine, with its own copy of kvswarm, for as long as the block runs."""
    locustfile = ROOT / "locustfiles" / "multi_round.py"
    command = [sys.executable, "-m", "locust", "-f", str(locustfile), "--worker", "--master-port", port]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    process = subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def master(port: str, workers: int = 1) -> list[object]:
    bind = ["--master-bind-host", "127.0.0.1", "--master-bind-port", port]
    return ["--headless", "--users", 4, "--spawn-rate", 4, "--master", "--expect-workers", workers, *bind]


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
        process.communicate(timeout=30)
    run = load("latest", tmp_path / "results" / "elsewhere")
    assert run.manifest.state == "complete"
    rows = of_the_load(run)
    assert len(rows) >= 8
    assert sorted(rows.request_id) == sorted(slow.asked)
    assert not list(worker_folder.iterdir())


def test_a_worker_that_comes_during_a_run_takes_no_user_and_waits_for_the_next(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow, port = slow_server(0.2), str(free_port())
    with worker(port, ROOT):
        words = [*master(port), "--scenario", scenario(CHAT), "--target", slow.url, "--run-time", "10s"]
        locust = start_locust("multi_round.py", *words)
        wait_until(lambda: len(slow.asked) >= 4)
        with worker(port, ROOT):
            code, output = locust.wait()
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    assert (run.manifest.state, run.problems) == ("complete", ())
    assert any("came during the run" in note for note in run.manifest.notes)
    rows = of_the_load(run)
    assert sorted(rows.request_id) == sorted(slow.asked)
    assert (rows.status == "ok").all()  # no session was cut short to make room
    # Every session up to the last was played, so no place in their order was the late one's.
    assert set(rows.session) == set(range(rows.session.max() + 1))


def test_a_worker_with_other_sources_is_refused_and_the_run_goes_on(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow, port = slow_server(0.2), str(free_port())
    elsewhere = tmp_path / "other-checkout"
    shutil.copytree(ROOT / "harness", elsewhere / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    (elsewhere / "harness" / "__init__.py").open("a").write('__version__ = "0.0.9"\n')
    with worker(port, ROOT), worker(port, elsewhere, checkout=elsewhere) as other:
        words = [*master(port, workers=2), "--scenario", scenario(CHAT), "--target", slow.url, "--run-time", "4s"]
        words += ["--results", f"file://{tmp_path}/results"]  # the worker writes to this URL itself
        code, output = start_locust("multi_round.py", *words).wait()
        said, _ = other.communicate(timeout=30)
    assert code == 0, output
    assert other.returncode == 2
    for text in (output, said):
        assert "it has kvswarm 0.0.9, the master has" in text
    run = load("latest", tmp_path / "results")
    assert run.manifest.state == "complete"
    assert any("was refused: it has kvswarm 0.0.9" in note for note in run.manifest.notes)
    rows = of_the_load(run)
    assert sorted(rows.request_id) == sorted(slow.asked)
    assert set(rows.session) == set(range(rows.session.max() + 1))
