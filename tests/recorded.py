"""Small runs on disk, written part by part as real ones are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.record.manifest import Manifest
from harness.record.run_directory import create
from harness.record.schema import HARNESS_HEALTH, REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter
from tests.analysis.rows import Row, target


def write_run(
    base: str | Path,
    run_id: str,
    requests: Iterable[Row],
    samples: Iterable[Row] = (),
    health: Iterable[Row] = (),
    **changes: Any,
) -> str:
    """The directory of the run. `changes`: of run.json, which else says that target t played all of it."""
    directory = create(base, run_id)
    fields: dict[str, Any] = {
        "kvswarm_version": "0.1.0", "run_id": run_id, "state": "complete", "started_ns": 0, "options": {},
        "scenario_name": "demo", "scenario": {}, "targets": [target()], "versions": {},
    }  # fmt: skip
    manifest = Manifest(**fields | changes)
    requests_writer = PartWriter(directory.url, "requests/part-0000", REQUESTS)
    samples_writer = PartWriter(directory.url, "server_metrics/part", SERVER_METRICS)
    health_writer = PartWriter(directory.url, "harness_health/part-0-0000", HARNESS_HEALTH)
    for writer, rows in ((requests_writer, requests), (samples_writer, samples), (health_writer, health)):
        for row in rows:
            writer.add(row | {"run_id": run_id})
        writer.flush()
    manifest.add_parts("requests", requests_writer.parts)
    manifest.add_parts("server_metrics", samples_writer.parts)
    manifest.add_parts("harness_health", health_writer.parts)
    directory.write_manifest(manifest)
    return directory.url
