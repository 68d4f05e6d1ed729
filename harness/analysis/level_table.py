"""The waterfall by level of the prompt, as the report shows it."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from harness.analysis.numbers import short_tokens
from harness.analysis.steps import LOSSES, Steps
from harness.analysis.tables import Footnotes, Sides

_HEADINGS = {
    "prompt_tokens": "prompt\ntokens",
    "shareable": "share-\nable",
    "granularity": "granu-\nlarity",
    "in_flight": "in\nflight",
    "capacity": "capa-\ncity",
    "routing": "rout-\ning",
    "expected": "expec-\nted",
    "unexplained": "unex-\nplained",
    "measured": "meas-\nured",
}
"""Field of `Steps` -> its heading, in the order of the columns."""
_MEANING = (
    "By level: what is shareable, what each step takes away of it, and what is left. A hit is a prefix of its prompt, "
    "so each of them lies in some of the levels; the lines add up to the table above. Levels stand in the order of the "
    "prompts; steps that take nothing away are left out."
)


def level_table(sides: Sides, notes: Footnotes) -> Table | None:
    """One row for each level and side; None if it is known of no side."""
    by_side = [
        (number, {str(part.key): part.steps for part in summary.waterfall.by_level})
        for number, summary in sides.numbered()
    ]
    levels = list(dict.fromkeys(level for _, steps in by_side for level in steps))
    if not levels:
        return None
    notes.need(_MEANING)
    names = _columns([steps for _, by_level in by_side for steps in by_level.values()])
    table = sides.table()
    table.add_column("level", overflow="fold")
    for name in names:
        table.add_column(_HEADINGS[name], justify="right", no_wrap=True)
    for level in levels:
        for number, by_level in by_side:
            if level in by_level:
                cells = (short_tokens(getattr(by_level[level], name)) for name in names)
                table.add_row(*number, Text(level), *cells)
    return table


def _columns(rows: list[Steps]) -> list[str]:
    """Fields that say something: the expected is what is measured where nothing is unexplained."""
    empty = {name for name in LOSSES if not any(getattr(steps, name) for steps in rows)}
    if all(steps.measured is None for steps in rows):
        empty.add("measured")
    elif "unexplained" in empty and all(steps.measured is not None for steps in rows):
        empty.add("expected")
    return [name for name in _HEADINGS if name not in empty]
