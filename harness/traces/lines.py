"""JSON Lines: each line an object, and what is wrong with one told with the file and the line's number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

import orjson

from harness.errors import InputError
from harness.traces.entry import BadEntry
from harness.traces.request import Skipped

T = TypeVar("T")

HOW_TO_GO_ON = "correct it, or leave out what cannot be used: --skip-bad-lines, or skip_bad_lines: true in a scenario"


def open_trace(path: Path) -> BinaryIO:
    """Raises InputError where there is no file, or none that can be read."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror}") from None


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1 with the blank ones counted."""
    with open_trace(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.isspace():
                yield number, line


def parse_json(line: bytes) -> object:
    """Raises BadEntry."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise BadEntry(f"not valid JSON: {problem.msg}, at character {problem.pos + 1}") from None


def read_lines(path: Path, parse: Callable[[object], T], skip_bad: bool) -> tuple[list[T], Skipped]:
    """What `parse` makes of each line. It raises BadEntry for one that cannot be used.

    Such a line raises InputError, or is left out and counted if `skip_bad`. Raises InputError too if no line is left.
    """
    values: list[T] = []
    bad, first = 0, None
    for number, line in numbered_lines(path):
        try:
            values.append(parse(parse_json(line)))
        except BadEntry as problem:
            place = f"line {number}: {problem}"
            if not skip_bad:
                raise InputError(f"{path}, {place}; {HOW_TO_GO_ON}") from None
            bad, first = bad + 1, first or place
    skipped = Skipped(bad, first)
    if not values:
        raise nothing_left(path, skipped)
    return values, skipped


def nothing_left(path: Path, skipped: Skipped) -> InputError:
    """What to raise where a trace has no requests."""
    if skipped.first is None:
        return InputError(f"{path}: holds no requests; expected one a line, or a JSON object with a list of them")
    return InputError(f"{path}: none of its {skipped.entries} requests can be used; the first: {skipped.first}")
