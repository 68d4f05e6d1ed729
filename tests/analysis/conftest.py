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
from harness.record.schema import REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter
from tests.analysis.rows import Row, target


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """make_run(requests, samples, **changes of run.json) -> Run."""
    numbers = itertools.count(1)

    def make(requests: Iterable[Row], samples: Iterable[Row] = (), **changes: Any) -> Run:
        run_id = f"run-{next(numbers)}"
        directory = create(tmp_path, run_id)
        tables = {
            "requests": PartWriter(directory.url, "requests/part-0000", REQUESTS),
            "server_metrics": PartWriter(directory.url, "server_metrics/part", SERVER_METRICS),
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
            tables["requests"].add(row)
        for row in samples:
            tables["server_metrics"].add(row)
        for table in tables.values():
            table.flush()
        manifest.add_parts("requests", tables["requests"].parts)
        manifest.add_parts("server_metrics", tables["server_metrics"].parts)
        for key, value in changes.items():
            setattr(manifest, key, value)
        directory.write_manifest(manifest)
        return load(directory.url)

    return make
