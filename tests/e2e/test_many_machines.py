"""Master, two workers and a simulated engine on four hosts: links are cut and come back, a worker is killed.

The workers do not see the master's files: their rows travel over the link that is cut.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pandas as pd
import pytest
import requests

from harness.analysis import load
from harness.analysis.run import Run
from tests.e2e.conftest import CHAT, ROOT
from tests.e2e.hosts import CONTROL, DATA, Host, hosts, missing
from tests.waiting import wait_until

RESULTS = "file:///proc/self/cwd/results"
"""Another folder for each process that does not share its current directory with the master."""
CUT_S = 10.0


@pytest.fixture(scope="module")
def net() -> Iterator[list[Host]]:
    if reason := missing():
        pytest.skip(reason)
    with hosts("master", "one", "two", "engine") as made:
        yield made


class Engine:
    """`kvswarm serve sim` on a host of its own; an answer takes about a quarter of a second."""

    def __init__(self, host: Host, folder: Path) -> None:
        self._host = host
        self._log = folder / "asked.txt"
        self._log.touch()
        address, port = host.address(DATA), 8000
        self.url = f"http://{address}:{port}/v1"
        words = ["--host", address, "--port", str(port), "--time-scale", "0.2", "--request-log", str(self._log)]
        command = host.command(sys.executable, "-m", "harness.cli", "serve", "sim", *words)
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert f"listens on {self.url}" in self._process.stdout.readline()

    @property
    def log(self) -> list[str]:
        """Ids of all requests that it read, in their order."""
        return self._log.read_text().splitlines()

    @property
    def asked(self) -> list[str]:
        """Those of the load: the check's are named, and sessions of the warm-up have negative numbers."""
        return [request_id for request_id in self.log if not re.search("-check-|--", request_id)]

    def answered(self) -> int:
        """Requests that it has answered to the end, by its own count; one whose client hung up is in no such count."""
        page = self._host.inside(lambda: requests.get(self.url.replace("/v1", "/metrics"), timeout=10).text)
        return round(sum(map(float, re.findall(r"^vllm:request_success_total\{.*\} (.*)$", page, re.MULTILINE))))

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)


@pytest.fixture
def engine(net: list[Host], tmp_path: Path) -> Iterator[Engine]:
    made = Engine(net[-1], tmp_path)
    yield made
    made.stop()


def locust(host: Host, folder: Path, *words: object) -> subprocess.Popen[str]:
    locustfile = ROOT / "locustfiles" / "multi_round.py"
    command = host.command(sys.executable, "-m", "locust", "-f", str(locustfile), *map(str, words))
    folder.mkdir()
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class Swarm:
    """A run under way: Locust on master, one and two."""

    def __init__(self, net: list[Host], engine: Engine, scenario: Path, folder: Path, run_time_s: int) -> None:
        master, *workers, _ = net
        self.results = folder / "master" / "results"
        link = ["--master-port", 5557, "--master-host", master.address(CONTROL)]
        self.workers = [locust(host, folder / host.name, "--worker", *link) for host in workers]
        words = ["--master", "--expect-workers", 2, "--headless", "--users", 6, "--spawn-rate", 6]
        words += ["--scenario", scenario, "--target", engine.url, "--results", RESULTS, "--run-time", f"{run_time_s}s"]
        self.master = locust(master, folder / "master", *words)

    def wait(self) -> tuple[int, str]:
        """(the master's exit code, everything that it printed)."""
        text, _ = self.master.communicate(timeout=120)
        return self.master.returncode, text

    def end(self) -> None:
        for process in (self.master, *self.workers):
            process.kill()
            print(process.communicate()[0])  # pytest shows it if the test failed


@pytest.fixture
def start(
    net: list[Host], engine: Engine, scenario: Callable[[str], Path], tmp_path: Path
) -> Iterator[Callable[[int], Swarm]]:
    with ExitStack() as stack:

        def begin(run_time_s: int) -> Swarm:
            swarm = Swarm(net, engine, scenario(CHAT), tmp_path, run_time_s)
            stack.callback(swarm.end)
            return swarm

        yield begin


def by_worker(request_ids: list[str]) -> Counter[int]:
    """Of two workers, one plays the sessions with even numbers."""
    return Counter(int(request_id.split("-")[-2]) % 2 for request_id in request_ids)


def of_the_load(run: Run) -> pd.DataFrame:
    """Its requests, but for the master's own."""
    return run.requests[run.requests.phase.isin(["ramp", "measure"])]


@contextmanager
def cut(host: Host, *networks: str) -> Iterator[None]:
    for network in networks:
        host.cut(network)
    yield
    for network in networks:
        host.mend(network)


def test_links_that_are_cut_for_a_while_lose_no_row_and_double_none(
    net: list[Host], engine: Engine, start: Callable[[int], Swarm]
) -> None:
    _, one, two, _ = net
    swarm = start(24)
    wait_until(lambda: len(engine.asked) >= 60, 20)
    with cut(one, CONTROL), cut(two, CONTROL, DATA):
        time.sleep(2.0)  # what had been sent is answered
        before = by_worker(engine.asked)
        time.sleep(CUT_S - 2.0)
        grown = by_worker(engine.asked) - before
    code, output = swarm.wait()
    assert code == 0, output
    run = load("latest", swarm.results)
    assert run.manifest.state == "complete"
    # Both workers went on; the one that still reached the engine did so all the while.
    assert len(grown) == 1
    assert all(count > grown.total() for count in by_worker(engine.asked).values())
    rows = of_the_load(run)
    assert sorted(rows.request_id) == sorted(engine.asked)
    assert len(run.requests) == len(engine.log) == engine.answered()
    assert (rows.status == "ok").all()
    outages = [note for note in run.manifest.notes if "out of the master's reach" in note]
    assert len(outages) == 2, run.manifest.notes
    assert {worker.host for worker in run.manifest.workers} == {"one", "two"}


def test_a_worker_that_is_killed_costs_its_own_rows_only(engine: Engine, start: Callable[[int], Swarm]) -> None:
    swarm = start(8)
    wait_until(lambda: len(engine.asked) >= 30)
    swarm.workers[1].kill()
    code, output = swarm.wait()
    assert code == 3, output
    run = load("latest", swarm.results)
    assert run.manifest.state == "incomplete"
    (problem,) = [problem for problem in run.problems if "lost" in problem]
    assert "its connection was closed" in problem
    (alive,) = [worker.index for worker in run.manifest.workers if worker.reason != "lost"]
    assert re.search(f"worker {1 - alive} was lost", problem)
    wanted = [request_id for request_id in engine.asked if by_worker([request_id]) == Counter([alive])]
    assert sorted(of_the_load(run).request_id) == sorted(wanted)
    assert len(engine.log) - 3 <= engine.answered() <= len(engine.log)  # the dead worker's three users hung up
