"""What a check ends with, printed: its verdict, its numbers, and where its requests are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.checks.laboratory import Finding


def as_json(finding: Finding, run: str) -> str:
    """One JSON object; `run`: the run's directory."""
    return json.dumps(
        {
            "verdict": finding.verdict,
            "exit_code": finding.exit_code,
            "sentence": finding.sentence,
            "numbers": dict(finding.numbers),
            "run": run,
        },
        indent=2,
    )


def render(finding: Finding, run: str, title: str, console: Console) -> None:
    """All numbers that are known, the verdict, and the run's directory."""
    console.print(_numbers(finding.numbers, title) if finding.numbers else escape(title))
    console.print(f"Verdict: [bold]{finding.verdict}[/bold]. {escape(finding.sentence)}")
    console.print(f"[dim]Each request: {escape(run)}[/dim]")


def _numbers(numbers: Mapping[str, Any], title: str) -> Table:
    table = Table("", "", title=escape(title), title_justify="left", show_header=False)
    table.columns[1].justify = "right"
    for name, value in numbers.items():
        if value is not None:
            table.add_row(name.replace("_", " "), escape(_shown(value)))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
