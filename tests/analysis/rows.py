"""Rows that a test changes in the one place that it is about."""

from __future__ import annotations

from typing import Any

from harness.record.manifest import MetricNames, TargetRecord
from harness.record.schema import REQUESTS, SERVER_METRICS

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
