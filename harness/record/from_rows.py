"""What the rows of a run tell of it: as much of a run.json as can be made from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.record.manifest import Manifest, Phase, TargetRecord
from harness.record.storage import Folder

UNKNOWN = "unknown"
"""Stands where run.json must have a text that no row tells."""
_WHO = ["run_id", "target", "engine", "model", "scenario"]
_STAMPS = ["t_due", "t_send", "t_first", "t_last", "t_end"]


def rows_of(folder: Folder, parts: Sequence[str]) -> pa.Table:
    """Of request parts, the columns that this module looks at."""
    columns = [*_WHO, "phase", *_STAMPS]
    tables = [_read(folder, part, columns) for part in parts]
    return pa.concat_tables(tables, promote_options="permissive")


def _read(folder: Folder, part: str, columns: list[str]) -> pa.Table:
    file = pq.ParquetFile(f"{folder.path}/{part}", filesystem=folder.filesystem)
    return file.read(columns=[name for name in columns if name in file.schema_arrow.names])


def phases_of(rows: pa.Table) -> list[Phase]:
    """Each phase of each target, from the first time that one of its requests was due to the last stamp of one."""
    found = []
    groups = rows.select(["phase", "target"]).group_by(["phase", "target"], use_threads=False).aggregate([])
    for group in groups.to_pylist():
        is_of_group = pc.and_(pc.equal(rows["phase"], group["phase"]), pc.equal(rows["target"], group["target"]))
        of_group = rows.filter(is_of_group)
        ends = [pc.max(of_group[name]).as_py() for name in _STAMPS]
        found.append(
            Phase(
                phase=group["phase"],
                targets=(group["target"],),
                start_ns=pc.min(of_group["t_due"]).as_py(),
                end_ns=max(end for end in ends if end is not None),
            )
        )
    return sorted(found, key=lambda phase: phase.start_ns)


def manifest_of(rows: pa.Table) -> Manifest:
    """A run.json that says who was asked what, and nothing of how: options, scenario and identity are empty.

    `rows` must not be empty.
    """
    first = rows.slice(0, 1).to_pylist()[0]
    return Manifest(
        kvswarm_version=UNKNOWN,
        run_id=first["run_id"],
        started_ns=pc.min(rows["t_due"]).as_py(),
        options={},
        scenario_name=first["scenario"],
        scenario={},
        targets=_targets(rows),
        versions={},
    )


def _targets(rows: pa.Table) -> list[TargetRecord]:
    seen = rows.select(["target", "engine", "model"]).group_by(["target", "engine", "model"], use_threads=False)
    records: dict[str, TargetRecord] = {}
    for who in seen.aggregate([]).to_pylist():
        identity: dict[str, Any] = {"engine": who["engine"], "model": who["model"]}
        records.setdefault(
            who["target"],
            TargetRecord(name=who["target"], target={}, identity=identity, metrics=[], advice={}, lexicon={}),
        )
    return list(records.values())
