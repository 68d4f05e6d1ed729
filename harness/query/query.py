"""From runs and a question to an answer on the screen, in files, or both."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from rich.console import Console

from harness.errors import InputError
from harness.query.answer import Answer
from harness.query.formats import FILES, Format, Screen
from harness.query.views import connect
from harness.record.damage import naming_damage
from harness.record.reader import RecordedRun, open_runs

STDOUT = "-"


def query(
    names: Sequence[str], sql: str, results: str, files: Mapping[str, str], console: Console, *, strict: bool = True
) -> list[str]:
    """Answer `sql` over the runs of these names; a table if `files` (format -> path, or - for stdout) is empty.

    Returns the problems of the records: what is unfinished or missing in the runs. Raises as `open_runs` and `Answer`;
    InputError if a file cannot be written. A file appears when it is complete.
    """
    if list(files.values()).count(STDOUT) > 1:
        raise InputError("Only one format can go to - (stdout): give the others a file.")
    runs = open_runs(names, results, strict=strict)
    with naming_damage(runs), connect(runs) as connection, ExitStack() as opened:
        answer = Answer(connection, sql)
        outs = {kind: opened.enter_context(_open(path)) for kind, path in files.items()}
        formats: list[Format] = [FILES[kind](out, answer.schema) for kind, out in outs.items()]
        formats = formats or [Screen(console, answer.schema)]
        for batch in answer.batches():
            for each in formats:
                each.add(batch)
        for each in formats:
            each.end()
    return [problem for run in runs for problem in _problems(run)]


def _problems(run: RecordedRun) -> Iterator[str]:
    for problem in run.problems:
        yield f"{run.manifest.run_id}: {problem}"


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    """Written aside, and in its place when all went well. Raises InputError."""
    if path == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    place = Path(path)
    aside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with aside.open("wb") as out:
            yield out
        aside.replace(place)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; give another place.") from error
    finally:
        aside.unlink(missing_ok=True)
