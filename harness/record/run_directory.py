"""The directory of a run, as the process that conducts the run makes and keeps it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from pydantic import ValidationError

from harness.errors import InputError, RecordError
from harness.record.manifest import Manifest
from harness.record.storage import Folder

MANIFEST_NAME = "run.json"
LATEST = "latest"
"""Stands for the newest run wherever a run is named, so no run can have this id."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """`<base>/<run-id>/`; parts are put into it by `harness.record.writer.PartWriter(directory.url, ...)`."""

    folder: Folder
    run_id: str

    @property
    def url(self) -> str:
        """Path or pyarrow.fs URL; holds on every machine that sees the same file system."""
        return self.folder.url

    def write_manifest(self, manifest: Manifest) -> None:
        """Write run.json, or replace it; a reader sees the old or the new one. Raises RecordError."""
        try:
            self.folder.write(MANIFEST_NAME, manifest.model_dump_json(indent=2).encode() + b"\n")
        except OSError as error:
            raise RecordError(
                f"{self.folder.name_of(MANIFEST_NAME)} could not be written: {error.strerror or error}; "
                "the parts written so far are in place, make room or access and read them as an unfinished run."
            ) from error


def is_there(url: str, run_id: str) -> bool:
    """Whether this process sees the directory of the run: elsewhere the same path may be missing, or another."""
    try:
        return Manifest.model_validate_json(Folder.at(url).read(MANIFEST_NAME)).run_id == run_id
    except (OSError, InputError, ValidationError):
        return False


def create(base: str | os.PathLike[str], run_id: str) -> RunDirectory:
    """Make the directory of a new run below `base`, a path or a pyarrow.fs URL.

    Raises InputError if it exists, cannot be made, or if `run_id` cannot be a directory's name.
    """
    if not _RUN_ID.fullmatch(run_id) or run_id == LATEST:
        raise InputError(
            f"{run_id!r} cannot be the id of a run; use letters, digits, '.', '_' and '-', and not {LATEST!r}."
        )
    folder = Folder.at(base).child(run_id)
    try:
        folder.make_new()
    except FileExistsError as error:
        raise InputError(f"The run directory {folder.url} exists already; choose another run id.") from error
    except OSError as error:
        raise InputError(
            f"The run directory {folder.url} cannot be made: {error.strerror or error}; choose another place."
        ) from error
    return RunDirectory(folder, run_id)
