"""However a run is stopped, every request that was sent has a row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import load
from harness.embedded.process import free_port
from tests.e2e.conftest import CHAT, ROOT, Locust, SlowServer
from tests.waiting import wait_until

USERS = 6


def headless(slow: SlowServer, path: Path) -> list[object]:
    return ["--scenario", path, "--target", slow.url, "--headless", "--users", USERS, "--spawn-rate", USERS]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("how", ["ctrl-c", "sigterm", "run-time"])
def test_requests_in_flight_end_before_the_run_does(
    how: str,
    workers: int,
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(0.6)
    words = headless(slow, scenario(CHAT))
    if how == "run-time":
        words += ["--run-time", "3s"]
    locust = start_locust("multi_round.py", *words, workers=workers)
    wait_until(lambda: len(slow.asked) >= USERS)
    if how == "ctrl-c":  # a terminal sends it to the whole process group
        os.killpg(locust.process.pid, signal.SIGINT)
    elif how == "sigterm":
        locust.process.send_signal(signal.SIGTERM)
    code, output = locust.wait()
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    assert run.manifest.state == "complete"
    assert run.manifest.stopped_by == ("run-time" if how == "run-time" else "signal")
    assert sorted(run.measured.request_id) == sorted(slow.asked)
    assert (run.measured.status == "ok").all()


def test_what_outlasts_the_drain_is_cancelled_and_kept(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(30.0)
    words = [*headless(slow, scenario(CHAT)), "--drain-timeout", 0.5, "--warm-up-requests", 0]
    locust = start_locust("multi_round.py", *words, workers=2)
    wait_until(lambda: len(slow.asked) == USERS)
    os.killpg(locust.process.pid, signal.SIGINT)
    code, output = locust.wait()
    assert code == 0, output
    rows = load("latest", tmp_path / "results").measured
    assert sorted(rows.request_id) == sorted(slow.asked)
    assert (rows.status == "cancelled").all()
    assert rows.t_send.notna().all()
    assert rows.cached_tokens.isna().all()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_second_ctrl_c_cuts_the_drain_short(
    workers: int,
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(60.0)
    words = [*headless(slow, scenario(CHAT)), "--drain-timeout", 600, "--warm-up-requests", 0]
    locust = start_locust("multi_round.py", *words, workers=workers)
    wait_until(lambda: len(slow.asked) == USERS)
    os.killpg(locust.process.pid, signal.SIGINT)
    with pytest.raises(TimeoutError):
        wait_until(lambda: locust.process.poll() is not None, timeout=2.0)
    os.killpg(locust.process.pid, signal.SIGINT)
    code, output = locust.wait(60)
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    assert (run.manifest.state, run.manifest.stopped_by) == ("complete", "signal")
    assert sorted(run.measured.request_id) == sorted(slow.asked)
    assert (run.measured.status == "cancelled").all()


@pytest.mark.parametrize("workers", [0, 2])
def test_start_and_stop_by_the_page_twice(
    workers: int,
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(0.5)
    port = free_port()
    words = ["--scenario", scenario(CHAT), "--web-host", "127.0.0.1", "--web-port", port]
    locust = start_locust("multi_round.py", *words, workers=workers)

    def post(path: str, form: str = "") -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", form.encode(), timeout=60) as answer:
            return str(answer.read().decode())

    def started() -> bool:
        try:
            form = f"user_count={USERS}&spawn_rate={USERS}&target={slow.url}"
            return bool(json.loads(post("/swarm", form))["success"])
        except OSError:
            return False

    seen = 0
    for _ in range(2):
        wait_until(started)
        wait_until(lambda: len(slow.asked) >= seen + USERS)  # noqa: B023
        post("/stop")
        run = load("latest", tmp_path / "results")
        assert run.manifest.state == "complete", run.problems
        assert run.manifest.stopped_by == "stop"
        assert sorted(run.measured.request_id) == sorted(slow.asked[seen:])
        seen = len(slow.asked)
    os.killpg(locust.process.pid, signal.SIGINT)
    assert locust.wait()[0] == 0


def test_a_worker_that_dies_makes_the_run_incomplete(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(0.3)
    locust = start_locust("multi_round.py", *headless(slow, scenario(CHAT)), "--run-time", "8s", workers=2)
    wait_until(lambda: len(slow.asked) >= 2 * USERS)
    os.kill(locust.children()[0], signal.SIGKILL)
    code, output = locust.wait()
    assert code == 3, output
    run = load("latest", tmp_path / "results")
    assert run.manifest.state == "incomplete"
    assert any("lost" in problem for problem in run.problems)
    assert "was lost" in output
    # What the other worker measured is all there.
    alive = run.measured.worker.unique()
    assert len(alive) >= 1


@pytest.mark.parametrize("workers", [0, 1])
def test_rows_that_cannot_be_written_make_the_run_incomplete(
    workers: int,
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(0.2)
    words = [*headless(slow, scenario(CHAT)), "--warm-up-requests", 0]
    locust = start_locust("multi_round.py", *words, workers=workers)
    wait_until(lambda: len(slow.asked) >= USERS)
    (folder,) = (tmp_path / "results").iterdir()
    (folder / "requests").rename(tmp_path / "requests of the check")
    (folder / "requests").write_text("a file in the way of the folder")
    os.killpg(locust.process.pid, signal.SIGINT)
    code, output = locust.wait()
    assert code == 3, output
    assert "could not be written" in output
    manifest = json.loads((folder / "run.json").read_text())
    assert manifest["state"] == "incomplete"
    assert any("could not be written" in problem for problem in manifest["problems"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_kvswarm_run_passes_signals_on_and_prints_the_tables(
    number: signal.Signals, slow_server: Callable[[float], SlowServer], scenario: Callable[[str], Path], tmp_path: Path
) -> None:
    slow = slow_server(0.4)
    command = [sys.executable, "-m", "harness.cli", "run", str(scenario(CHAT)), "--target", slow.url]
    command += ["--users", str(USERS), "--run-time", "", "--results", str(tmp_path / "results")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        try:
            wait_until(lambda: len(slow.asked) >= 2 * USERS)
            run.send_signal(number)
            output, _ = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 0, output
    assert "How far to trust it" in output
    recorded = load("latest", tmp_path / "results")
    assert recorded.manifest.state == "complete"
    assert sorted(recorded.measured.request_id) == sorted(slow.asked)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_is_stopped_before_its_load_says_so(
    workers: int,
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow = slow_server(20)
    slow.delays_the_check = True
    locust = start_locust("multi_round.py", *headless(slow, scenario(CHAT)), workers=workers)
    wait_until(lambda: list((tmp_path / "results").glob("*/run.json")))
    os.killpg(locust.process.pid, signal.SIGINT)
    code, output = locust.wait(timeout=15)
    assert code == 3, output
    assert "Traceback" not in output
    assert "kvswarm: stopped before the load began" in output
    run = load("latest", tmp_path / "results")
    assert (run.manifest.state, run.manifest.stopped_by) == ("incomplete", "signal")
    assert "the run was stopped before its load began" in run.manifest.problems
    assert slow.asked == []
