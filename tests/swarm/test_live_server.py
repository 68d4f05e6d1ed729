"""What a server's metrics page says while a run goes on: never a figure that it does not give."""

from __future__ import annotations

import pytest

from harness.collector import Sample
from harness.engines.base import Metric
from harness.swarm.live_server import LiveServer

CACHED = Metric("cached_prompt_tokens", ("hits",), "counter", "cached")
PROMPT = Metric("prompt_tokens", ("queries",), "counter", "all")
COMPUTED = Metric("computed_prompt_tokens", ("computed",), "counter", "computed")
GAUGES = (
    Metric("running_requests", ("running",), "gauge", "running"),
    Metric("waiting_requests", ("waiting",), "gauge", "waiting"),
    Metric("kv_usage", ("usage",), "gauge", "share"),
)


def page(**values: float) -> list[Sample]:
    return [Sample(name, "gauge", "gauge", {}, value) for name, value in values.items()]


def test_the_counters_rate_is_of_the_last_stretch_alone() -> None:
    server = LiveServer((CACHED, PROMPT), None, stretch_s=30)
    rates = [
        server.look(t_s, page(hits=hits, queries=queries))["counter_rate"]
        for t_s, hits, queries in ((0, 500, 1000), (10, 500, 1100), (20, 590, 1200), (30, 690, 1300), (41, 790, 1400))
    ]
    #      nothing  0/100  90/200  190/300  from 20 s on: 200/200
    assert rates == [None, 0.0, 0.45, pytest.approx(190 / 300), 1.0]


def test_an_engine_that_counts_what_it_computed() -> None:
    server = LiveServer((CACHED, COMPUTED), None, stretch_s=30)
    server.look(0, page(hits=100, computed=100))
    assert server.look(3, page(hits=400, computed=200))["counter_rate"] == 0.75


def test_a_restart_begins_the_stretch_anew() -> None:
    server = LiveServer((CACHED, PROMPT), None, stretch_s=30)
    server.look(0, page(hits=100, queries=1000))
    assert server.look(3, page(hits=0, queries=10))["counter_rate"] is None
    assert server.look(6, page(hits=5, queries=20))["counter_rate"] == 0.5


def test_gauges_are_told_as_they_are() -> None:
    told = LiveServer(GAUGES, 40_000, stretch_s=30).look(0, page(running=3, waiting=0, usage=0.25))
    assert told == {"counter_rate": None, "running": 3, "waiting": 0, "kv_in_use": 10_000}


def test_a_page_that_was_not_read_tells_nothing() -> None:
    told = LiveServer((CACHED, PROMPT, *GAUGES), 40_000, stretch_s=30).look(0, [])
    assert set(told.values()) == {None}
    assert LiveServer(GAUGES, None, stretch_s=30).look(0, page(usage=0.25))["kv_in_use"] is None
