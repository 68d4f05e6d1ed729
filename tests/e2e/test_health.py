"""A worker that is kept busy on purpose is found out, and what it measured meanwhile does not count."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from harness.analysis import load
from harness.analysis.health import marked_seconds
from harness.analysis.report import render
from tests.e2e.conftest import CHAT, Locust, SlowServer

LOCUSTFILE = """
import time
from pathlib import Path

import gevent
from locust import User, task

from harness.swarm import SessionUser, install

install("multi-round")


class Sessions(SessionUser):
    pass


class Busy(User):
    "One of them, on one worker: it holds up the loop for more than a second."

    fixed_count = 1

    @task
    def burn(self):
        gevent.sleep(1.0)
        began_ns = time.time_ns()
        while time.time_ns() - began_ns < 1_200_000_000:
            pass
        index = self.environment.runner.worker_index
        Path("BURNT").write_text(f"{index} {began_ns} {time.time_ns()}")
        gevent.sleep(600)
"""


def test_what_a_busy_worker_measured_is_left_out(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    slow, burnt, locustfile = slow_server(0.2), tmp_path / "burnt", tmp_path / "busy.py"
    locustfile.write_text(LOCUSTFILE.replace("BURNT", str(burnt)))
    words = ["--scenario", scenario(CHAT), "--target", slow.url, "--headless", "--users", 9, "--spawn-rate", 9]
    locust = start_locust(str(locustfile), *words, "--run-time", "4s", workers=2)
    code, output = locust.wait()
    assert code == 0, output
    busy, began_ns, ended_ns = map(int, burnt.read_text().split())
    run = load("latest", tmp_path / "results")

    health = run.harness_health
    assert set(health["worker"]) == {-1, 0, 1}
    assert health["live_sessions"].max() >= 4
    assert health["streams"].max() >= 1
    assert health["rows_waiting"].max() >= 1
    stalls = [mark for mark in marked_seconds(health) if mark.start_ns < ended_ns and mark.end_ns > began_ns]
    assert [mark.why for mark in stalls if mark.worker == busy] == ["stall"]

    rows = run.requests[run.requests["phase"] == "measure"]
    amid = rows[(rows["worker"] == busy) & (rows["t_due"] < ended_ns) & (rows["t_end"] > began_ns)]
    assert len(amid) > 0
    assert set(amid.index) <= set(run.left_out)
    assert not set(amid.index) & set(run.counted.index)
    # Before the first mark of any worker nothing is left out.
    first_ns = min(mark.start_ns for mark in marked_seconds(health))
    early = rows[rows["t_end"] < first_ns]
    assert set(early.index) <= set(run.counted.index)

    out = io.StringIO()
    render([run], Console(file=out, width=300))
    n = len(rows) - len(run.counted)
    assert f"{n} of {len(rows)} measured requests were under way then, and are left out" in out.getvalue()
    assert len(load("latest", tmp_path / "results", all_requests=True).counted) == len(rows)
    assert sorted(rows["request_id"]) == sorted(slow.asked)
