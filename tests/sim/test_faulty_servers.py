"""Faults of a whole simulated engine: its metrics page, restarts, a slow start, and a share of its requests."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.collector import Row, open_collector, scrape, value
from harness.embedded.process import free_port, process_group
from harness.engines.reading import read_event
from harness.engines.target import Target
from harness.sim.options import MannerName, SimOptions
from tests.sim.faulty import CHAT, TOKENS, Faulty, get, started


def test_a_metrics_page_that_breaks_off_is_no_page() -> None:
    with started(faults=("broken-metrics",)) as faulty:
        rows: list[Row] = []
        collector = open_collector(faulty.target, rows.extend)
        collector.scrape_now("before")
        assert not collector.available
        assert "is no Prometheus metrics page" in (collector.reason or "")
        assert [(row["name"], row["value"]) for row in rows if row["name"] == "up"] == [("up", 0.0)]
        assert faulty.ask().status == "ok"


def test_a_slow_metrics_page_takes_its_time_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with started(faults=("slow-metrics:0.5",)) as faulty:
        rows: list[Row] = []
        collector = open_collector(faulty.target, rows.extend)
        collector.scrape_now("before")
        (duration,) = [row["value"] for row in rows if row["name"] == "scrape_duration_seconds"]
        assert duration >= 0.5
        assert collector.available
        monkeypatch.setattr(scrape, "TIMEOUT_S", 0.1)
        collector.scrape_now("after")
        assert not collector.available
        assert "no answer in time" in (collector.reason or "")


@pytest.mark.parametrize("manner", ["vllm", "sglang", "llama-cpp"])
def test_a_restart_loses_the_request_and_the_counters_and_is_noticed(manner: MannerName) -> None:
    with started(manner=manner) as faulty:
        collector = open_collector(faulty.target, lambda rows: None)
        (counter,) = [metric for metric in faulty.engine.metrics if metric.meaning == "generated_tokens"]
        assert faulty.ask().status == "ok"
        assert collector.settle("before", faulty.engine.is_idle)
        assert value(counter, collector.samples) == TOKENS
        lost = faulty.ask("restart")
        assert (lost.status, lost.t_first) in (("truncated", None), ("stream_error", None))
        again = _until_it_is_back(faulty)
        assert (again.status, again.cached_tokens) == ("ok", 0)
        assert collector.settle("after", faulty.engine.is_idle)
        assert value(counter, collector.samples) == TOKENS
        assert len(collector.restarts) == 1


@pytest.mark.timing
def test_a_restart_can_come_by_itself() -> None:
    with started(faults=("restart:1.5",)) as faulty:
        collector = open_collector(faulty.target, lambda rows: None)
        collector.scrape_now("before")
        deadline = time.monotonic() + 30
        while not collector.restarts and time.monotonic() < deadline:
            time.sleep(0.2)
            collector.scrape_now("periodic")
        assert len(collector.restarts) == 1


def _until_it_is_back(faulty: Faulty) -> Reply:
    deadline = time.monotonic() + 30
    while (reply := faulty.ask()).status != "ok" and time.monotonic() < deadline:
        time.sleep(0.05)
    return reply


@contextmanager
def process(fault: str, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server that need not be up yet, and its URL."""
    options = SimOptions(manner="vllm", faults=(fault,))
    port = free_port(options.host)
    command = [str(options.python()), *options.arguments(port)]
    with process_group(command, {}, folder / "log") as running:
        yield running, f"http://127.0.0.1:{port}/v1"


def post_until_ok(url: str) -> list[tuple[str, int | None]]:
    """(status, HTTP status) of requests one after the other, each that differs from the one before."""
    seen: list[tuple[str, int | None]] = []
    target = Target(url=url)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        client = TimedClient(target, read_event)
        body = {"model": "tiny", "messages": CHAT, "max_tokens": 2, "stream": True}
        reply = client.post("/chat/completions", body, {}, lambda reply: None)
        client.close()
        if not seen or seen[-1] != (reply.status, reply.http_status):
            seen.append((reply.status, reply.http_status))
        if reply.status == "ok":
            break
        time.sleep(0.05)
    return seen


def test_while_it_loads_it_is_there_and_answers_nothing(tmp_path: Path) -> None:
    with process("loading:2", tmp_path) as (_, url):
        seen = post_until_ok(url)
    assert seen[-2:] == [("http_error", 503), ("ok", 200)]
    assert seen[:-2] in ([], [("connect_error", None)])


def test_a_late_start_refuses_connections(tmp_path: Path) -> None:
    with process("unreachable:2", tmp_path) as (_, url):
        assert post_until_ok(url) == [("connect_error", None), ("ok", 200)]


def test_whoever_starts_a_slow_server_waits_until_it_is_healthy() -> None:
    with started(faults=("loading:2",)) as faulty:
        assert get(faulty.url, "/health")[0] == 200


def test_a_share_of_the_requests_meets_a_fault_the_same_ones_each_time() -> None:
    patterns = []
    for _ in range(2):
        with started(faults=("503@0.5",), seed=4) as faulty:
            patterns.append([faulty.ask(tokens=1).status for _ in range(20)])
    assert patterns[0] == patterns[1]
    assert set(patterns[0]) == {"ok", "http_error"}
