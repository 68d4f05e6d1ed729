"""A JSON document of somebody else's making, read with care for what is not there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON object."""

    where: str
    """File, and the place in it, for sentences."""
    content: Mapping[str, Any]

    def get(self, *keys: str) -> Any:
        """What lies below the keys; None where one of them is missing."""
        here: Any = self.content
        for key in keys:
            here = here.get(key) if isinstance(here, Mapping) else None
        return here

    def number(self, *keys: str) -> float | None:
        """None: it is missing, null, or not finite. Raises InputError if it is something else."""
        value = self.get(*keys)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"{self.where}: {'.'.join(keys)} is {value!r}, not a number; give the file as it was written."
            )
        return float(value) if math.isfinite(value) else None

    def count(self, *keys: str) -> int | None:
        value = self.number(*keys)
        return None if value is None else round(value)


def read_documents(file: Path) -> list[Document]:
    """The object in a JSON file, or those on the lines of one. Raises InputError."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no text in UTF-8: give a JSON result file.") from error
    try:
        contents = [json.loads(text)]
    except ValueError:
        contents = _lines(file, text)
    for content in contents:
        if not isinstance(content, dict):
            raise InputError(f"{file} holds JSON, but no object: give a result file of a load generator.")
    several = len(contents) > 1
    return [
        Document(f"{file}, line {number}" if several else str(file), content)
        for number, content in enumerate(contents, start=1)
    ]


def _lines(file: Path, text: str) -> list[Any]:
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines] if lines else _not_json(file)
    except ValueError:
        return _not_json(file)


def _not_json(file: Path) -> list[Any]:
    raise InputError(f"{file} is not JSON, as a whole or line by line: give a JSON result file of a load generator.")
