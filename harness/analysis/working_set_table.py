"""The working set over time, as the report shows it."""

from __future__ import annotations

from rich.table import Table

from harness.analysis.numbers import count, percent, tokens
from harness.analysis.steps import Steps
from harness.analysis.summary import Summary
from harness.analysis.tables import Footnotes, Sides
from harness.analysis.working_set import InUse

_COLUMNS = {
    "requests": "\nrequests",
    "prompt tokens": "prompt\ntokens",
    "measured": "hit rate\nmeasured",
    "expected": "\nexpected",
    "lost": "lost to\ncapacity",
    "working set": "working\nset",
    "multiple": "x KV\ncapacity",
}
"""Cell -> heading of its column, in order."""
_MEANING = (
    "Working set: tokens that some prompt began with and a later one begins with again, each once, the most at any "
    "moment of the window. It is known by hindsight, so it falls to nothing towards the end of the run. Hit rates and "
    "lost to capacity: of the window's prompt tokens, as in the waterfall. Windows without requests are left out."
)


def working_set_table(sides: Sides, notes: Footnotes) -> Table | None:
    """One row for each window and side; None if there are none."""
    rows = [
        (number, window, _cells(window, steps, summary))
        for number, summary in sides.numbered()
        for window, steps in _windows(summary)
    ]
    if not rows:
        return None
    notes.need(_MEANING)
    names = [name for name in _COLUMNS if any(cells[name] is not None for _, _, cells in rows)]
    table = sides.table()
    for heading in ("seconds", *(_COLUMNS[name] for name in names)):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, window, cells in rows:
        if table.rows and window.key == rows[0][1].key:
            table.add_section()
        shown = (cells[name] or notes.unknown(None) for name in names)
        table.add_row(*number, f"{window.start_s:,.1f} to {window.end_s:,.1f}", *shown)
    return table


def _windows(summary: Summary) -> list[tuple[InUse, Steps]]:
    steps = {part.key: part.steps for part in summary.waterfall.by_window}
    return [(window, steps[window.key]) for window in summary.working_set if window.key in steps]


def _cells(window: InUse, steps: Steps, summary: Summary) -> dict[str, str | None]:
    """None: not known."""

    def share(part: int | None) -> str | None:
        return None if part is None else percent(part / steps.prompt_tokens)

    capacity = summary.achieved.capacity_tokens
    return {
        "requests": count(steps.requests),
        "prompt tokens": tokens(steps.prompt_tokens),
        "measured": share(steps.measured),
        "expected": share(steps.expected),
        "lost": share(steps.capacity),
        "working set": tokens(window.working_set_tokens),
        "multiple": None if capacity is None else f"{window.working_set_tokens / capacity:.2f}",
    }
