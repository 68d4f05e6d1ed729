"""`kvswarm repair`: a run.json that agrees with the parts that are there, of a run whose master could not write it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from harness.errors import InputError, RecordError
from harness.record.from_rows import manifest_of, phases_of, rows_of
from harness.record.manifest import Manifest, Part, Parts
from harness.record.part_check import open_part, strange_run
from harness.record.reader import latest, read_manifest
from harness.record.run_directory import LATEST, MANIFEST_NAME, RunDirectory
from harness.record.schema import TABLES
from harness.record.storage import Folder

BEFORE = f"{MANIFEST_NAME}.before-repair"
"""The run.json that was there; the second has -2 behind it, and so on."""
DAMAGED = ".damaged"
"""Behind the name of a part that is not readable Parquet: no reader takes it for a part then."""
STRANGE = ".of-another-run"
"""The same of a part that holds another run's rows."""


@dataclass(frozen=True, slots=True)
class Repair:
    """What was found, and done."""

    folder: Folder
    changed: bool
    """False: run.json agreed with the parts, and nothing was written."""
    rows: Mapping[str, int]
    """Table -> rows in its readable parts."""
    problems: tuple[str, ...]
    """Sentences: what is not known or lost; they stand in the new run.json, too."""
    kept: str | None
    """Name of the run.json that was there; None: none was, or it is still in place."""
    half_written: tuple[str, ...]
    """Names of files that a process began and did not end. They are left as they are; no reader looks at them."""

    def sentences(self) -> Iterator[str]:
        """What to tell the person who asked."""
        counts = ", ".join(f"{count:,} rows of {table}" for table, count in self.rows.items() if count) or "no rows"
        if self.changed:
            yield f"{self.folder.url}: run.json now lists all readable parts, with {counts}; the run is incomplete."
            yield from (f"{problem}." for problem in self.problems)
        else:
            yield f"{self.folder.url} is whole: run.json agrees with the parts, with {counts}. Nothing was changed."
        if self.kept:
            yield f"The run.json that was there is now {self.folder.name_of(self.kept)}."
        for name in self.half_written:
            yield f"{self.folder.name_of(name)} is half-written and holds nothing that can be read; it was left there."


@dataclass(slots=True)
class _Found:
    """The parts of a run's directory."""

    parts: dict[str, list[Part]] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    strange: dict[str, str] = field(default_factory=dict)
    """Name of a part -> the other run whose rows it holds."""


def repair(run: str | os.PathLike[str], base: str | os.PathLike[str] = "results") -> Repair:
    """Make run.json agree with the parts; parts are counted by their own footers. Removes nothing.

    `run`: a directory, an id below `base`, or latest. Raises InputError if there is no such run, or nothing of it to
    rebuild; RecordError if its format is newer, or the new run.json cannot be written.
    """
    folder = _folder(os.fspath(run), base)
    manifest, problems = _manifest(folder)
    found = _found(folder, None if manifest is None else manifest.run_id)
    half_written = tuple(name for table in ("", *TABLES) for name in folder.half_written(table))
    rows = {table: sum(part.rows for part in parts) for table, parts in found.parts.items()}
    if manifest is not None:
        problems += _disagreements(folder, manifest, found)
        if not problems and not found.damaged and not found.strange:
            return Repair(folder, False, rows, (), None, half_written)
    table = rows_of(folder, [part.name for part in found.parts["requests"]]) if rows["requests"] else None
    if manifest is None:
        if table is None:
            raise InputError(f"{folder.url} holds no readable {MANIFEST_NAME} and no request: nothing can be rebuilt.")
        manifest = manifest_of(table)
    manifest.parts = Parts(**found.parts)
    known = {(phase.phase, target) for phase in manifest.phases for target in phase.targets}
    if table is not None:
        manifest.phases += [phase for phase in phases_of(table) if (phase.phase, phase.targets[0]) not in known]
    problems += [
        f"{name} is damaged and holds no rows that can be read; it is now {_set_aside(folder, name, DAMAGED)}"
        for name in found.damaged
    ]
    problems += [
        f"{name} holds rows of another run, {other}, and is now {_set_aside(folder, name, STRANGE)}"
        for name, other in found.strange.items()
    ]
    manifest.state = "incomplete"
    manifest.problems += problems
    kept = _keep(folder)
    RunDirectory(folder, manifest.run_id).write_manifest(manifest)
    return Repair(folder, True, rows, tuple(problems), kept, half_written)


def _folder(run: str, base: str | os.PathLike[str]) -> Folder:
    if run == LATEST:
        return latest(Folder.at(base))
    folder = Folder.at(run) if "://" in run or Path(run).is_dir() else Folder.at(base).child(run)
    if not folder.exists(MANIFEST_NAME) and not any(map(folder.files, TABLES)):
        raise InputError(f"There is no run {run!r}: {folder.url} holds neither {MANIFEST_NAME} nor a part.")
    return folder


def _manifest(folder: Folder) -> tuple[Manifest | None, list[str]]:
    """The one that is there, if it can be used, and what is wrong with it by itself. Raises RecordError: too new."""
    newer: list[str] = []
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
    try:
        manifest = read_manifest(folder, newer.append)
    except FileNotFoundError:
        return None, [_unknown("was missing", now)]
    except RecordError:
        if newer:
            raise RecordError(newer[0]) from None
        return None, [_unknown("was damaged", now)]
    if newer:
        raise RecordError(newer[0])
    if manifest.state != "running":
        return manifest, []
    return manifest, [
        f"run.json knew no end of the run; the parts were counted at {now} UTC by kvswarm repair: rows that no part "
        "held by then, what the workers said at their end, the last scrape and the end itself are not known"
    ]


def _unknown(what: str, now: str) -> str:
    return (
        f"run.json {what}, and was made from the rows at {now} UTC by kvswarm repair: options, scenario, who answered, "
        "the start-up check, the cold start and the end are not known"
    )


def _found(folder: Folder, run_id: str | None) -> _Found:
    found = _Found()
    for table in TABLES:
        found.parts[table] = []
        for name in folder.files(table):
            if not name.endswith(".parquet"):
                continue
            try:
                metadata = open_part(folder, name).metadata
            except pa.ArrowInvalid:
                found.damaged.append(name)
                continue
            if run_id is not None and (other := strange_run(metadata, run_id)):
                found.strange[name] = other
            else:
                found.parts[table].append(Part(name=name, rows=metadata.num_rows))
    return found


def _disagreements(folder: Folder, manifest: Manifest, found: _Found) -> list[str]:
    """A sentence for each part that is not as run.json has it; of a run without an end none is listed for sure."""
    sentences = []
    for table, parts in found.parts.items():
        there = {part.name: part.rows for part in parts}
        listed = {part.name: part.rows for part in getattr(manifest.parts, table)}
        for name, rows in listed.items():
            if name not in there and name not in found.damaged and name not in found.strange:
                sentences.append(f"{name} is missing, and {rows} rows with it")
            elif name in there and there[name] != rows:
                sentences.append(f"{name} holds {there[name]} rows, where run.json had {rows}")
        new = [name for name in there if name not in listed]
        if new and manifest.state != "running":
            sentences.append(f"run.json did not list {', '.join(new)}")
    return sentences


def _set_aside(folder: Folder, name: str, ending: str) -> str:
    folder.filesystem.move(f"{folder.path}/{name}", f"{folder.path}/{name}{ending}")
    return f"{name}{ending}"


def _keep(folder: Folder) -> str | None:
    """Put a copy of run.json aside; its name, or None if there is no run.json."""
    if not folder.exists(MANIFEST_NAME):
        return None
    number, name = 1, BEFORE
    while folder.exists(name):
        number += 1
        name = f"{BEFORE}-{number}"
    folder.write(name, folder.read(MANIFEST_NAME))
    return name
