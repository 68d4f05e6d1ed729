"""Reading a recorded run, and holding it against what its run.json says is there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from harness.command import kvswarm
from harness.errors import InputError, RecordError
from harness.record.manifest import Manifest, Part
from harness.record.run_directory import LATEST, MANIFEST_NAME
from harness.record.schema import FORMAT_VERSION, TABLES
from harness.record.storage import Folder
from harness.record.upgrade import from_version_1

Fault = Callable[[str], None]
"""Takes a sentence about damage: raises it or notes it."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that was found; its tables are read when asked for."""

    folder: Folder
    manifest: Manifest
    parts: Mapping[str, tuple[str, ...]]
    """Table -> names of its readable parts."""
    problems: tuple[str, ...]
    """Sentences about the record itself: what is unfinished, missing or does not agree with run.json."""

    def requests(self) -> pa.Table:
        """All request rows, as `harness.record.schema.REQUESTS`; part by part, sorted by t_due within each."""
        return self._table("requests")

    def server_metrics(self) -> pa.Table:
        """All samples, as `harness.record.schema.SERVER_METRICS`; part by part, sorted by t_ns within each."""
        return self._table("server_metrics")

    def harness_health(self) -> pa.Table:
        """All rows, as `harness.record.schema.HARNESS_HEALTH`; part by part, sorted by t_ns within each."""
        return self._table("harness_health")

    def _table(self, name: str) -> pa.Table:
        tables = [_open(self.folder, part).read() for part in self.parts[name]]
        # A part of another version may lack a column or have one more; a missing one reads as null.
        return pa.concat_tables([TABLES[name].empty_table(), *tables], promote_options="permissive")


def open_run(
    path_or_id: str | os.PathLike[str], base: str | os.PathLike[str] = "results", *, strict: bool = True
) -> RecordedRun:
    """Find a run by its directory, its id below `base`, or as "latest", and check its parts.

    Raises InputError if there is no such run, RecordError if run.json cannot be read. A missing or damaged part, a
    wrong number of rows, an unlisted part of a complete run or a newer format raise RecordError if `strict`; else
    what is there is loaded and the sentence is among `problems`. A run that never ended has the parts that are found.
    An older format is brought up to today's.
    """
    folder = _find(os.fspath(path_or_id), base)
    problems: list[str] = []

    def fault(sentence: str) -> None:
        if strict:
            raise RecordError(sentence)
        problems.append(sentence)

    manifest = read_manifest(folder, fault)
    if manifest.state == "running":
        problems.append(
            "The run has not ended, or its master was killed: its last rows may be missing; of a run that was killed, "
            f"{kvswarm()} repair {folder.url} makes a finished record."
        )
    if manifest.state == "incomplete":
        problems.append("The run is incomplete: some of its rows may be missing.")
    parts = {
        name: _checked_parts(folder, name, getattr(manifest.parts, name), manifest.state, problems, fault)
        for name in TABLES
    }
    return RecordedRun(folder, manifest, parts, tuple(problems))


def _find(run: str, base: str | os.PathLike[str]) -> Folder:
    if run == LATEST:
        return latest(Folder.at(base))
    is_place = "://" in run or (Path(run) / MANIFEST_NAME).is_file()
    folder = Folder.at(run) if is_place else Folder.at(base).child(run)
    if not folder.exists(MANIFEST_NAME):
        raise InputError(
            f"There is no run {run!r}: {folder.name_of(MANIFEST_NAME)} does not exist; "
            "give a run's id, its directory or 'latest'."
        )
    return folder


def latest(base: Folder) -> Folder:
    """The run in `base` that was started last. Raises InputError if there is none, RecordError as `read_manifest`."""
    runs = [folder for folder in map(base.child, base.folders()) if folder.exists(MANIFEST_NAME)]
    if not runs:
        raise InputError(f"There is no run in {base.url}; make one, or name a run's directory.")
    return max(runs, key=lambda folder: (read_manifest(folder, fault=lambda sentence: None).started_ns, folder.url))


def read_manifest(folder: Folder, fault: Fault) -> Manifest:
    """run.json in today's form; `fault` is told of a newer format. Raises RecordError if it is damaged, OSError."""
    name = folder.name_of(MANIFEST_NAME)
    try:
        content: Any = json.loads(folder.read(MANIFEST_NAME))
        version = int(content["format_version"])
    except (ValueError, TypeError, KeyError) as error:
        raise RecordError(
            f"{name} is damaged: it is not JSON with a format_version; restore it or remove the run."
        ) from error
    if version > FORMAT_VERSION:
        fault(_too_new(name, version))
    try:
        return Manifest.model_validate(from_version_1(content) if version == 1 else content)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{name} is damaged: it lacks what version 1 of it had ({error}); restore it or remove the run."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(key) for key in first["loc"])
        raise RecordError(f"{name} is damaged: {where}: {first['msg']}; restore it or remove the run.") from error


def _too_new(name: str, version: int) -> str:
    return f"{name} has format version {version}, this kvswarm reads up to {FORMAT_VERSION}; install a newer kvswarm."


def _checked_parts(
    folder: Folder, table: str, listed: list[Part], state: str, problems: list[str], fault: Fault
) -> tuple[str, ...]:
    """Names of the parts of `table` that can be read."""
    found = folder.files(table)
    readable = []
    for part in listed:
        if part.name not in found:
            fault(f"{folder.name_of(part.name)} is missing; run.json says that it holds {part.rows} rows.")
        elif _check(folder, part.name, part.rows, fault):
            readable.append(part.name)
    unlisted = sorted({name for name in found if name.endswith(".parquet")} - {part.name for part in listed})
    for name in unlisted:
        if not _check(folder, name, None, fault):
            continue
        if state == "complete":
            fault(f"run.json does not list {folder.name_of(name)}, though it says that the run is complete.")
        elif state == "incomplete":
            problems.append(f"run.json does not list {folder.name_of(name)}; its rows are used.")
        readable.append(name)
    return tuple(readable)


def _check(folder: Folder, name: str, rows: int | None, fault: Fault) -> bool:
    """Whether the part is readable Parquet; `rows`, if known, must be what it holds."""
    try:
        metadata = _open(folder, name).metadata
    except pa.ArrowInvalid as error:
        fault(f"{folder.name_of(name)} is damaged: {error}.")
        return False
    if rows is not None and metadata.num_rows != rows:
        fault(f"{folder.name_of(name)} holds {metadata.num_rows} rows, run.json says {rows}.")
    version = int((metadata.metadata or {}).get(b"kvswarm.format_version", FORMAT_VERSION))
    if version > FORMAT_VERSION:
        fault(_too_new(folder.name_of(name), version))
    return True


def _open(folder: Folder, name: str) -> pq.ParquetFile:
    return pq.ParquetFile(f"{folder.path}/{name}", filesystem=folder.filesystem)
