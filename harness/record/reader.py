"""Reading a recorded run, and holding it against what its run.json says is there."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from harness.command import kvswarm
from harness.errors import InputError, RecordError
from harness.record.manifest import Manifest
from harness.record.part_check import Fault, checked_parts, open_part, too_new
from harness.record.run_directory import LATEST, MANIFEST_NAME
from harness.record.schema import FORMAT_VERSION, TABLES
from harness.record.storage import Folder
from harness.record.upgrade import from_version_1

LENIENT = "--lenient reads what is there (in Python: strict=False)."


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

    def read_through(self) -> None:
        """Read every part whole. Raises RecordError for the first one that is damaged within."""
        for names in self.parts.values():
            for part in names:
                self._read(part)

    def _table(self, name: str) -> pa.Table:
        tables = [self._read(part) for part in self.parts[name]]
        # A part of another version may lack a column or have one more; a missing one reads as null.
        return pa.concat_tables([TABLES[name].empty_table(), *tables], promote_options="permissive")

    def _read(self, part: str) -> pa.Table:
        try:
            return open_part(self.folder, part).read()
        except (pa.ArrowException, OSError) as error:
            # Its footer was sound, so that nothing was seen when the run was opened.
            raise RecordError(
                f"{self.folder.name_of(part)} is damaged within: {error}; move it away, and {kvswarm()} repair "
                f"{self.folder.url} makes a record of the rest."
            ) from error


def open_run(
    path_or_id: str | os.PathLike[str], base: str | os.PathLike[str] = "results", *, strict: bool = True
) -> RecordedRun:
    """Find a run by its directory, its id below `base`, or as "latest", and check its parts.

    Raises InputError if there is no such run, RecordError if run.json cannot be read. A missing or damaged part, a
    wrong number of rows, a part of another run, an unlisted part of a complete run or a newer format raise RecordError
    if `strict`; else what is there of this run is loaded and the sentence is among `problems`. A run that never ended
    has the parts that are found. An older format is brought up to today's.
    """
    folder = _find(os.fspath(path_or_id), base)
    problems: list[str] = []

    def fault(sentence: str) -> None:
        if strict:
            raise RecordError(f"{sentence} {LENIENT}")
        problems.append(sentence)

    manifest = read_manifest(folder, fault)
    if manifest.state == "running":
        problems.append(
            "The run has not ended, or its master was killed: its last rows may be missing; of a run that was killed, "
            f"{kvswarm()} repair {folder.url} makes a finished record."
        )
    if manifest.state == "incomplete":
        problems.append("The run is incomplete: some of its rows may be missing.")
    parts = {name: checked_parts(folder, name, manifest, problems, fault) for name in TABLES}
    return RecordedRun(folder, manifest, parts, tuple(problems))


def open_runs(
    names: Sequence[str], base: str | os.PathLike[str] = "results", *, strict: bool = True
) -> list[RecordedRun]:
    """Each as `open_run`. Raises InputError also if a run stands there twice."""
    runs = [open_run(name, base, strict=strict) for name in names]
    each_once(runs)
    return runs


def each_once(runs: Sequence[RecordedRun]) -> None:
    """Raise InputError if two of them are one run, or a copy: what they hold would count twice."""
    counts = Counter(run.manifest.run_id for run in runs)
    if twice := next((run_id for run_id, times in counts.items() if times > 1), None):
        places = sorted({run.folder.url for run in runs if run.manifest.run_id == twice})
        copies = f" ({', '.join(places)} are copies of it)" if len(places) > 1 else ""
        raise InputError(f"The run {twice} is named {counts[twice]} times{copies}: name each run once.")


def _find(run: str, base: str | os.PathLike[str]) -> Folder:
    if run == LATEST:
        return latest(Folder.at(base))
    is_url = "://" in run
    places = [Folder.at(run)] if is_url or Path(run).is_dir() else []
    places += [] if is_url else [Folder.at(base).child(run)]
    folder = next((place for place in places if place.exists(MANIFEST_NAME)), None)
    if folder is None:
        raise InputError(_no_run(run, places[0]))
    return folder


def _no_run(run: str, folder: Folder) -> str:
    name = folder.name_of(MANIFEST_NAME)
    if any(map(folder.files, TABLES)):
        return f"{name} is missing; {kvswarm()} repair {folder.url} makes one of what the rows beside it tell."
    within = [each for each in folder.folders() if folder.child(each).exists(MANIFEST_NAME)]
    if within:
        some = f"one of its {len(within)} runs" if len(within) > 1 else "its run"
        return f"{folder.url} is no run, but a folder of runs: name {some}, such as {folder.child(within[0]).url}."
    return f"There is no run {run!r}: {name} does not exist; give a run's id, its directory or 'latest'."


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
        raise RecordError(f"{name} is damaged: it is not JSON with a format_version; {_restore(folder)}.") from error
    if version > FORMAT_VERSION:
        fault(too_new(name, version))
    try:
        return Manifest.model_validate(from_version_1(content) if version == 1 else content)
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError(
            f"{name} is damaged: it lacks what version 1 of it had ({error}); {_restore(folder)}."
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(key) for key in first["loc"])
        raise RecordError(f"{name} is damaged: {where}: {first['msg']}; {_restore(folder)}.") from error


def _restore(folder: Folder) -> str:
    return f"restore it, or let {kvswarm()} repair {folder.url} rebuild what the rows tell"
