"""The lab notebook: a file to which every check appends one JSON line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import __version__
from harness.checks.laboratory import Finding, Laboratory
from harness.errors import InputError
from harness.record.reader import RecordedRun


class Labbook:
    """Lines of JSON: time (ISO 8601, UTC), command, kvswarm (its version), target, url, identity, run (its id), folder,
    verdict, exit_code, sentence, numbers; in `others` the same of targets that were compared. No headers, no keys."""

    def __init__(self, path: Path) -> None:
        """Raises InputError if the file cannot be appended to; nothing is written yet."""
        self._path = path
        self._append("")

    def write(self, line: Mapping[str, Any]) -> None:
        """Raises InputError if it cannot be written."""
        self._append(json.dumps(line) + "\n")

    def _append(self, text: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as book:
                book.write(text)
        except OSError as error:
            raise InputError(
                f"The lab notebook {self._path} cannot be written to: {error.strerror or error}; name another file."
            ) from error


def labbook(path: Path | None) -> Labbook | None:
    """Raises InputError if the file cannot be appended to."""
    return None if path is None else Labbook(path)


def write_line(
    book: Labbook | None, command: str, laboratory: Laboratory, finding: Finding, *others: Laboratory
) -> None:
    """Append the finding to the lab notebook, if there is one; `others`: those that it was compared with.

    Raises InputError if it cannot be written.
    """
    if book is not None:
        line = _line(command, _named(laboratory), finding)
        book.write({**line, "others": [_named(other) for other in others]} if others else line)


def write_runs(book: Labbook | None, command: str, runs: Sequence[RecordedRun], finding: Finding) -> None:
    """The same of a finding that comes from runs, of one target each; the first one has the others beside it."""
    if book is not None:
        first, *others = ({**_target_of(run), "run": run.manifest.run_id, "folder": run.folder.url} for run in runs)
        book.write({**_line(command, first, finding), "others": others})


def _line(command: str, named: Mapping[str, Any], finding: Finding) -> dict[str, Any]:
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "command": command,
        "kvswarm": __version__,
        **named,
        "verdict": finding.verdict,
        "exit_code": finding.exit_code,
        "sentence": finding.sentence,
        "numbers": dict(finding.numbers),
    }


def _target_of(run: RecordedRun) -> dict[str, Any]:
    target = run.manifest.targets[0]
    return {"target": target.name, "url": target.target["url"], "identity": target.identity}


def _named(laboratory: Laboratory) -> dict[str, Any]:
    return {
        "target": laboratory.target.name,
        "url": laboratory.target.url,
        "identity": asdict(laboratory.identity),
        "run": laboratory.run_id,
        "folder": laboratory.folder,
    }
