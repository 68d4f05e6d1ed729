"""Rows and manifests that a test changes in the one place that it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.record.manifest import Manifest, TargetRecord
from harness.record.schema import REQUESTS, SERVER_METRICS

Row = dict[str, Any]


@pytest.fixture
def request_row() -> Callable[..., Row]:
    """A row of the request table, all that may be null being null, with the given changes."""

    def make(**changes: Any) -> Row:
        row = dict.fromkeys(REQUESTS.names)
        row |= {"run_id": "r1", "target": "t", "engine": "e", "model": "m", "scenario": "s"}
        row |= {"phase": "measure", "worker": 0, "request_id": "q", "t_due": 1_000, "status": "ok"}
        return row | {"chunks": 0, "coalesced": 0, "bytes": 0} | changes

    return make


@pytest.fixture
def sample_row() -> Callable[..., Row]:
    """A row of the metrics table with the given changes."""

    def make(**changes: Any) -> Row:
        row = dict.fromkeys(SERVER_METRICS.names)
        row |= {"run_id": "r1", "t_ns": 1_000, "moment": "before", "target": "t"}
        row |= {"name": "hits_total", "family": "hits", "type": "counter", "labels": {"model": "m"}, "value": 1.0}
        return row | changes

    return make


@pytest.fixture
def manifest() -> Manifest:
    return Manifest(
        kvswarm_version="0.1.0",
        run_id="r1",
        started_ns=1_700_000_000_000_000_000,
        options={"users": 2},
        scenario_name="s",
        scenario={"kind": "agent-loop"},
        targets=[
            TargetRecord(
                name="t",
                target={"url": "http://127.0.0.1:8000/v1"},
                identity={"engine": "e", "version": None},
                metrics=[],
                advice={},
                lexicon={"words": 512},
                cold_start="nonce",
            )
        ],
        versions={"python": "3.11"},
    )
