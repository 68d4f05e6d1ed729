"""From a command's words to a check's end: one target, a run of its own, the finding printed and written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from harness.checks.labbook import labbook, write_line
from harness.checks.laboratory import Finding, Laboratory, opened, targets_of
from harness.checks.outcome import as_json, render
from harness.errors import TargetError


def examine(
    command: str,
    target: str,
    model: str,
    book: Path | None,
    results: str,
    options: Mapping[str, Any],
    check: Callable[[Laboratory], Finding],
    in_json: bool,
) -> Finding:
    """Run `check` on the one target that is named as for a run, and print what it found.

    A target that fails in the middle is a finding, too: it could not be told. Raises InputError for what the target
    does not take, TargetError for one that cannot be reached or understood.
    """
    notebook = labbook(book)
    laboratory: Laboratory | None = None
    try:
        with opened(command, targets_of([target], model)[0], results, options) as laboratory:
            finding = check(laboratory)
    except TargetError as problem:
        if laboratory is None:
            raise
        finding = Finding("unanswered", 2, f"{problem}".removesuffix(".") + ".", {})
    write_line(notebook, command, laboratory, finding)
    if in_json:
        typer.echo(as_json(finding, laboratory.folder))
    else:
        for note in laboratory.notes:
            typer.echo(f"Note: {note}")
        render(finding, laboratory.folder, f"{command}: {laboratory.target.name} ({laboratory.target.url})", Console())
    return finding
