"""Small recorded runs, written and loaded as real ones are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import Run, load
from harness.record.manifest import Manifest
from harness.record.run_directory import create
from harness.record.schema import HARNESS_HEALTH, REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter
from tests.analysis.rows import Row, target


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """make_run(requests, samples, health, all_requests, **changes of run.json) -> Run."""
    numbers = itertools.count(1)

    def make(
        requests: Iterable[Row],
        samples: Iterable[Row] = (),
        health: Iterable[Row] = (),
        all_requests: bool = False,
        **changes: Any,
    ) -> Run:
        run_id = f"run-{next(numbers)}"
        directory = create(tmp_path, run_id)
        tables = {
            "requests": PartWriter(directory.url, "requests/part-0000", REQUESTS),
            "server_metrics": PartWriter(directory.url, "server_metrics/part", SERVER_METRICS),
            "harness_health": PartWriter(directory.url, "harness_health/part-0-0000", HARNESS_HEALTH),
        }
        manifest = Manifest(
            kvswarm_version="0.1.0",
            run_id=run_id,
            state="complete",
            started_ns=1_700_000_000_000_000_000,
            options={},
            scenario_name="demo",
            scenario={},
            targets=[target()],
            versions={},
        )
        for row in requests:
            tables["requests"].add(row | {"run_id": run_id})
        for row in samples:
            tables["server_metrics"].add(row | {"run_id": run_id})
        for row in health:
            tables["harness_health"].add(row | {"run_id": run_id})
        for table in tables.values():
            table.flush()
        manifest.add_parts("requests", tables["requests"].parts)
        manifest.add_parts("server_metrics", tables["server_metrics"].parts)
        manifest.add_parts("harness_health", tables["harness_health"].parts)
        for key, value in changes.items():
            setattr(manifest, key, value)
        directory.write_manifest(manifest)
        return load(directory.url, all_requests=all_requests)

    return make
