"""What run.json says of the runs, as tables that SQL can join with their rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from harness.record.manifest import Manifest, TargetRecord
from harness.record.reader import RecordedRun

_TEXT, _INT, _BOOL = pa.string(), pa.int64(), pa.bool_()

RUNS = pa.schema(
    {
        "run_id": _TEXT, "folder": _TEXT, "state": _TEXT, "stopped_by": _TEXT, "started_ns": _INT, "ended_ns": _INT,
        "scenario": _TEXT, "kind": _TEXT, "seed": _INT, "together": _BOOL, "kvswarm_version": _TEXT,
        "options": _TEXT, "scenario_json": _TEXT, "problems": pa.list_(_TEXT), "notes": pa.list_(_TEXT),
    }
)  # fmt: skip
"""One row a run. `options` and `scenario_json` are JSON text; `problems` has those of the record itself as well."""

_IDENTITY: dict[str, pa.DataType] = {
    "engine": _TEXT, "model": _TEXT, "version": _TEXT, "build": _TEXT, "model_path": _TEXT, "context_tokens": _INT,
    "capacity_tokens": _INT, "granularity_tokens": _INT, "slots": _INT, "prefix_caching": _BOOL, "kv_dtype": _TEXT,
    "template_fingerprint": _TEXT, "tokenizer_fingerprint": _TEXT, "adapter": _TEXT,
}  # fmt: skip
TARGETS = pa.schema(
    {"run_id": _TEXT, "target": _TEXT, "url": _TEXT}
    | _IDENTITY
    | {"cold_start": _TEXT, "check_verdict": _TEXT, "identity": _TEXT}
)
"""One row for each target of a run; `identity` is all that is known of it, as JSON text."""

PHASES = pa.schema({"run_id": _TEXT, "target": _TEXT, "phase": _TEXT, "start_ns": _INT, "end_ns": _INT})
"""One row for each stretch of a run and each target that it was spent on."""

METRIC_NAMES = pa.schema({"run_id": _TEXT, "target": _TEXT, "meaning": _TEXT, "name": _TEXT, "kind": _TEXT})
"""One row for each name that a metric of a known meaning may have on the target's page."""


def manifest_tables(runs: Sequence[RecordedRun]) -> dict[str, pa.Table]:
    """Name -> table of what the run.json of all runs say. Null: not known."""
    manifests = [run.manifest for run in runs]
    pairs = [(manifest, target) for manifest in manifests for target in manifest.targets]
    return {
        "runs": pa.Table.from_pylist([_run(run) for run in runs], RUNS),
        "targets": pa.Table.from_pylist([_target(manifest, target) for manifest, target in pairs], TARGETS),
        "phases": pa.Table.from_pylist([row for manifest in manifests for row in _phases(manifest)], PHASES),
        "metric_names": pa.Table.from_pylist(
            [row for manifest, target in pairs for row in _metric_names(manifest, target)], METRIC_NAMES
        ),
    }


def _run(run: RecordedRun) -> dict[str, Any]:
    manifest = run.manifest
    return {
        "run_id": manifest.run_id,
        "folder": run.folder.url,
        "state": manifest.state,
        "stopped_by": manifest.stopped_by,
        "started_ns": manifest.started_ns,
        "ended_ns": manifest.ended_ns,
        "scenario": manifest.scenario_name,
        "kind": manifest.scenario.get("kind"),
        "seed": manifest.scenario.get("seed"),
        "together": manifest.together,
        "kvswarm_version": manifest.kvswarm_version,
        "options": json.dumps(manifest.options),
        "scenario_json": json.dumps(manifest.scenario),
        "problems": [*run.problems, *manifest.problems],
        "notes": manifest.notes,
    }


def _target(manifest: Manifest, target: TargetRecord) -> dict[str, Any]:
    return {
        "run_id": manifest.run_id,
        "target": target.name,
        "url": target.target.get("url"),
        **{name: target.identity.get(name) for name in _IDENTITY},
        "cold_start": target.cold_start,
        "check_verdict": None if target.check is None else target.check.verdict,
        "identity": json.dumps(target.identity),
    }


def _phases(manifest: Manifest) -> list[dict[str, Any]]:
    return [
        {"run_id": manifest.run_id, "target": target} | phase.model_dump(exclude={"targets"})
        for phase in manifest.phases
        for target in phase.targets
    ]


def _metric_names(manifest: Manifest, target: TargetRecord) -> list[dict[str, Any]]:
    return [
        {
            "run_id": manifest.run_id,
            "target": target.name,
            "meaning": metric.meaning,
            "name": name,
            "kind": metric.kind,
        }
        for metric in target.metrics
        for name in metric.names
    ]
