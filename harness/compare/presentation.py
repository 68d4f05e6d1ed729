"""A comparison on the screen, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from harness.analysis.tables import Footnotes
from harness.compare.compare import Comparison
from harness.compare.wording import NOTES, TEXTS, facts, headings, headline, identity_rows, lines, names

_STATES = {"failed": "bold red", "unknown": "bold red", "undecided": "yellow", "passed": "green"}


def render(comparison: Comparison, console: Console) -> None:
    """Print what was compared, what differs in who answered, and a table of effects for each side."""
    notes = Footnotes()
    for line in facts(comparison):
        console.print(Text(line))
    for problem in comparison.problems:
        console.print(Text(f"Problem: {problem}", style="red"))
    rows = list(identity_rows(comparison))
    console.print()
    if rows:
        console.print(Text("What differs", style="bold"))
        console.print(_table(["", *names(comparison)], rows, left=range(len(rows[0]))))
    else:
        console.print(Text("Nothing that is known of the servers, the load and the scenario differs."))
    for against in comparison.against:
        console.print()
        console.print(Text(headline(against), style="bold"))
        found = list(lines(against, notes))
        table = _table(headings(against.side), [line.cells for line in found], left=TEXTS)
        for number, one in enumerate(found):
            if one.is_found:
                table.rows[number].style = "bold"
        console.print(table)
    if comparison.gates:
        console.print()
    for gate in comparison.gates:
        console.print(Text(f"Gate, {gate.side} against A: {gate.sentence}", style=_STATES[gate.state]))
    console.print()
    for note in (*NOTES, *notes.all()):
        console.print(Text(note, style="dim"))


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    to_the_left = set(left)
    for number, title in enumerate(titles):
        side: JustifyMethod = "left" if number in to_the_left else "right"
        table.add_column(title, justify=side, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def as_markdown(comparison: Comparison) -> str:
    """Headline and gates first; the tables, which are long, can be opened."""
    return "\n".join(_markdown(comparison)) + "\n"


def _markdown(comparison: Comparison) -> Iterator[str]:
    notes = Footnotes()
    yield "### kvswarm compare"
    yield ""
    for against in comparison.against:
        yield f"**{_escaped(headline(against))}**"
        yield ""
    for gate in comparison.gates:
        mark = "✅" if gate.state == "passed" else "❌" if gate.state in ("failed", "unknown") else "⚠️"
        yield f"- {mark} {gate.side} against A: {_escaped(gate.sentence)}"
    for problem in comparison.problems:
        yield f"- Problem: {_escaped(problem)}"
    yield ""
    for line in facts(comparison):
        yield f"{_escaped(line)}  "
    rows = list(identity_rows(comparison))
    if rows:
        yield ""
        yield from _markdown_table(["what differs", *names(comparison)], rows, left=range(len(rows[0])))
    for against in comparison.against:
        yield ""
        yield f"<details><summary>All figures of {against.side} against A</summary>"
        yield ""
        cells = [line.cells for line in lines(against, notes)]
        yield from _markdown_table(headings(against.side), cells, left=TEXTS)
        yield ""
        yield "</details>"
    yield ""
    for note in (*NOTES, *notes.all()):
        yield f"<sub>{_escaped(note)}</sub>  "


def _markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: Iterable[int]) -> Iterator[str]:
    to_the_left = set(left)
    yield f"| {' | '.join(title.replace(chr(10), ' ') for title in titles)} |"
    yield f"| {' | '.join('---' if number in to_the_left else '---:' for number in range(len(titles)))} |"
    for row in rows:
        yield f"| {' | '.join(map(_escaped, row))} |"


def _escaped(text: str) -> str:
    """A URL or a name may hold what Markdown takes for its own."""
    for sign in "\\|*_<>`":
        text = text.replace(sign, f"\\{sign}")
    return text
