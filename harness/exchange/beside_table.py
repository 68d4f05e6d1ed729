"""Another load generator's figures next to ours, as a table and in words."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent
from harness.exchange.beside import UNCHECKED, Beside, Line


def render(found: Beside, console: Console) -> None:
    """Print the table, then how each figure is defined and what is to be read with care; needs 80 columns."""
    measured = found.measured
    version = f" {measured.version}" if measured.version else ""
    _say(console, f"{measured.tool}{version}: {measured.where}", style="bold")
    _say(console, f"beside kvswarm: {found.run_id}, target {found.target}", style="bold")
    successful, failed = count(measured.successful), count(measured.failed)
    _say(console, f"{measured.tool}: {successful} successful requests, {failed} that failed or were cut off.")
    console.print(_table(found))
    _say(console, f"As {measured.tool} defines them, in our columns (n: output_tokens):")
    for sentence in found.definitions:
        _say(console, f"  {sentence}.")
    for remark in measured.remarks:
        _say(console, f"Care: {remark}", style="yellow")
    if measured.silent:
        _say(console, "Not told, or told in its own way:", style="dim")
    for sentence in measured.silent:
        _say(console, f"  {sentence}.", style="dim")
    _say(console, UNCHECKED, style="dim")
    console.print()


def _table(found: Beside) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in ("figure", ""):
        table.add_column(heading, no_wrap=True)
    for heading in (f"{found.measured.tool}\nsays", "ours, by its\ndefinition", "ours, by\nour own"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("our\ncolumn", no_wrap=True)
    last = None
    for line in found.lines:
        if last is not None and line.figure != last:
            table.add_section()
        name, last = ("" if line.figure == last else line.figure), line.figure
        cells = (_cell(line, value) for value in (line.theirs, line.as_theirs, line.ours))
        table.add_row(name, line.statistic, *cells, line.column or "")
    return table


def _cell(line: Line, value: float | None) -> str:
    if line.statistic == "share":
        return percent(value)
    if line.statistic == "per s":
        return UNKNOWN if value is None else f"{value:,.2f}"
    return milliseconds(value)


def _say(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style), soft_wrap=True)
