"""A part of the report with plots of all sides, and what stands beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from harness.report.findings import Findings
from harness.report.markup import data_table, escaped, folded, linked, paragraph
from harness.report.plot import Plot, on_shared_axes

Columns = Sequence[Sequence[Plot]]
"""Plots that stand below each other, in columns that stand side by side."""


@dataclass(frozen=True, slots=True)
class Section:
    key: str
    title: str
    lead: str
    """HTML."""
    columns: Columns
    headings: Sequence[str]
    """Of the columns; empty: they need none."""
    after: Sequence[str] = field(default_factory=tuple)
    """HTML: sentences and tables."""

    @property
    def plots(self) -> Iterator[Plot]:
        for column in self.columns:
            yield from column


def headings(found: Sequence[Findings]) -> list[str]:
    """Of the columns of sides; none if there is only one."""
    return [one.side.name for one in found if one.side.name]


def each(found: Sequence[Findings], plots: Callable[[Findings], Sequence[Plot]]) -> Columns:
    """A column for each side, with axes that they share."""
    columns = [plots(one) for one in found]
    return on_shared_axes(columns) if len(columns) > 1 else columns


def side_table(found: Sequence[Findings], titles: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """Its first column has the number of the side, whose name `rows` have; it is left out if there is only one."""
    if len(found) > 1:
        word = found[0].side.name.partition(" ")[0]
        numbered = [(row[0].partition(":")[0].removeprefix(f"{word} "), *row[1:]) for row in rows]
        return data_table((word, *titles[1:]), numbered, texts)
    return data_table(titles[1:], [row[1:] for row in rows], texts - 1)


def sentences(found: Sequence[Findings], of: Callable[[Findings], Iterator[str]]) -> str:
    """Of each side, below its name if there are several."""
    if len(found) == 1:
        return "".join(paragraph(linked(line.strip())) for line in of(found[0]))
    blocks = [(one.side.name, "".join(paragraph(linked(line.strip())) for line in of(one))) for one in found]
    cards = "".join(f"<div><h3>{escaped(name)}</h3>{lines}</div>" for name, lines in blocks if lines)
    return folded("In words", f'<div class="cards words">{cards}</div>') if cards else ""
