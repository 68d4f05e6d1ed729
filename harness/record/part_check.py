"""The parts of a run's directory, held against what its run.json says of them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from harness.command import kvswarm
from harness.record.manifest import Manifest, Part
from harness.record.schema import FORMAT_VERSION
from harness.record.storage import Folder

Fault = Callable[[str], None]
"""Takes a sentence about damage: raises it or notes it."""


def checked_parts(folder: Folder, table: str, manifest: Manifest, problems: list[str], fault: Fault) -> tuple[str, ...]:
    """Names of the parts of `table` that can be read and are this run's."""
    listed: list[Part] = getattr(manifest.parts, table)
    found = folder.files(table)
    readable = []
    for part in listed:
        if part.name not in found:
            fault(
                f"{folder.name_of(part.name)} is missing; run.json says that it holds {part.rows} rows; "
                f"{_repair(folder)}."
            )
        elif _check(folder, part.name, part.rows, manifest.run_id, fault):
            readable.append(part.name)
    unlisted = sorted({name for name in found if name.endswith(".parquet")} - {part.name for part in listed})
    for name in unlisted:
        if not _check(folder, name, None, manifest.run_id, fault):
            continue
        if manifest.state == "complete":
            fault(
                f"run.json does not list {folder.name_of(name)}, though it says that the run is complete; "
                f"{_repair(folder)}."
            )
        elif manifest.state == "incomplete":
            problems.append(f"run.json does not list {folder.name_of(name)}; its rows are used.")
        readable.append(name)
    return tuple(readable)


def _repair(folder: Folder) -> str:
    return f"{kvswarm()} repair {folder.url} makes a record that says so"


def _check(folder: Folder, name: str, rows: int | None, run_id: str, fault: Fault) -> bool:
    """Whether the part is readable Parquet of this run; `rows`, if known, must be what it holds."""
    try:
        metadata = open_part(folder, name).metadata
    except pa.ArrowInvalid as error:
        fault(f"{folder.name_of(name)} is damaged: {str(error).rstrip('.')}; {_repair(folder)}.")
        return False
    if strange := strange_run(metadata, run_id):
        fault(f"{folder.name_of(name)} holds rows of another run, {strange}; {_repair(folder)}.")
        return False
    if rows is not None and metadata.num_rows != rows:
        fault(f"{folder.name_of(name)} holds {metadata.num_rows} rows, run.json says {rows}; {_repair(folder)}.")
    version = int((metadata.metadata or {}).get(b"kvswarm.format_version", FORMAT_VERSION))
    if version > FORMAT_VERSION:
        fault(too_new(folder.name_of(name), version))
    return True


def strange_run(metadata: pq.FileMetaData, run_id: str) -> str | None:
    """Of which other run a part has rows, by the statistics in its footer; None: of none, or they do not tell."""
    place = metadata.schema.names.index("run_id") if "run_id" in metadata.schema.names else None
    if place is None:
        return None
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(place).statistics
        if statistics is not None and statistics.has_min_max:
            other = next((str(end) for end in (statistics.min, statistics.max) if end != run_id), None)
            if other is not None:
                return other
    return None


def too_new(name: str, version: int) -> str:
    return f"{name} has format version {version}, this kvswarm reads up to {FORMAT_VERSION}; install a newer kvswarm."


def open_part(folder: Folder, name: str) -> pq.ParquetFile:
    """Raises pyarrow.ArrowInvalid if it is not Parquet, OSError."""
    try:
        return pq.ParquetFile(f"{folder.path}/{name}", filesystem=folder.filesystem)
    except OSError as error:
        if error.errno is not None:
            raise
        # Not of the system, but pyarrow's own.
        raise pa.ArrowInvalid("its footer cannot be understood") from error
