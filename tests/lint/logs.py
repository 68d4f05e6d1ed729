"""Logs of requests as lint reads them, and what it says of them by the estimate of tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.lint.finding import Lint, lint
from harness.lint.reading import Log, read_log
from harness.lint.tokens import by_text


def written(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def log_of(folder: Path, rows: Sequence[Any]) -> Log:
    return read_log(written(folder / "log.jsonl", rows))


def lint_of(folder: Path, rows: Sequence[Any]) -> Lint:
    return lint(log_of(folder, rows), by_text())


def kinds_of(found: Lint) -> set[str]:
    return {one.kind for one in found.kinds}
