"""Rows that a test changes in the one place that it is about."""

from __future__ import annotations

from typing import Any

from harness.record.manifest import MetricNames, TargetRecord
from harness.record.schema import HARNESS_HEALTH, REQUESTS, SERVER_METRICS

Row = dict[str, Any]

CACHED = MetricNames(meaning="cached_prompt_tokens", names=("hits_total",), kind="counter", counts="cached tokens")
PROMPT = MetricNames(meaning="prompt_tokens", names=("queries_total",), kind="counter", counts="prompt tokens")


def target(name: str = "t", **changes: Any) -> TargetRecord:
    """A target whose engine counts hits_total and queries_total, and tells nothing but its name and model."""
    fields: dict[str, Any] = {"name": name, "target": {"url": f"http://{name}/v1"}}
    fields |= {"identity": {"engine": "e", "model": "m"}, "metrics": [CACHED, PROMPT], "advice": {}, "lexicon": {}}
    return TargetRecord(**fields | changes)


def request(**changes: Any) -> Row:
    """A measured, successful, cold request that reports nothing."""
    row = dict.fromkeys(REQUESTS.names)
    row |= {"run_id": "r1", "target": "t", "engine": "e", "model": "m", "scenario": "demo", "worker": 0}
    row |= {"kind": "agent-loop", "phase": "measure", "warmth": "cold", "request_id": "q", "status": "ok"}
    return row | {"t_due": 1_000, "t_send": 1_000, "chunks": 0, "coalesced": 0, "bytes": 0} | changes


def sample(name: str, value: float, t_ns: int, moment: str, **changes: Any) -> Row:
    """One sample of a counter."""
    row = dict.fromkeys(SERVER_METRICS.names)
    row |= {"run_id": "r1", "target": "t", "family": name, "type": "counter", "labels": {}}
    return row | {"name": name, "value": value, "t_ns": t_ns, "moment": moment} | changes


def scrape(t_ns: int, moment: str, values: dict[str, float], **changes: Any) -> list[Row]:
    """A page that was read: `up` and the given counters."""
    return [sample(name, value, t_ns, moment, **changes) for name, value in ({"up": 1.0} | values).items()]


def second(number: int, worker: int = 0, **changes: Any) -> Row:
    """Second `number` of a worker that kept up."""
    row = dict.fromkeys(HARNESS_HEALTH.names)
    row |= {"run_id": "r1", "worker": worker, "t_ns": number * 1_000_000_000, "span_ms": 1_000.0, "cpu_share": 0.1}
    row |= {"loop_lag_p50_ms": 0.2, "loop_lag_max_ms": 3.0, "gc_pauses": 0, "gc_pause_ms": 0.0, "gc_longest_ms": 0.0}
    return row | {"socket_errors": 0} | changes
