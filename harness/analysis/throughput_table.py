"""What the engine got done in a second, side by side."""

from __future__ import annotations

from rich.table import Table

from harness.analysis.numbers import count, tokens
from harness.analysis.tables import Footnotes, Sides
from harness.analysis.throughput import Throughput

_LINES = {"requests": "requests/s", "input_tokens": "prompt tokens/s", "output_tokens": "output tokens/s"}
_MEANING = "requests and tokens a second: of the successful requests of the measured phase, over its length."


def throughput_table(sides: Sides, notes: Footnotes) -> Table | None:
    """One line for each rate, one column for each side; None if there was no measured phase."""
    found = [summary.throughput for summary in sides.summaries]
    if not any(found):
        return None
    notes.need(_MEANING)
    table = sides.columns(justify="right")
    for name, label in _LINES.items():
        table.add_row(label, *(_cell(one, name, notes) for one in found))
    return table


def _cell(found: Throughput | None, name: str, notes: Footnotes) -> str:
    if found is None:
        return notes.unknown("there was no measured phase")
    value: float | None = getattr(found, name)
    if value is None:
        return notes.unknown("some successful requests do not tell how many tokens they had")
    return f"{value:,.2f}" if value < 100 else count(round(value)) if name == "requests" else tokens(round(value))
