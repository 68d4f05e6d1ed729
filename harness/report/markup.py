"""Pieces of the page: texts, links to definitions, and tables, those of `harness.analysis` among them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from harness.analysis.numbers import UNKNOWN
from harness.report.glossary import key_of, phrases

_CONSOLE = Console(quiet=True)


def escaped(text: str) -> str:
    return html.escape(text)


def term(key: str, words: str) -> str:
    """Words that lead to their definition."""
    return f'<a class=term href="#def-{key}">{escaped(words)}</a>'


def explained(name: str) -> str:
    """The heading of a column or the name of a line, which leads to its definition if there is one."""
    key = key_of(name)
    shown = escaped(name.strip()).replace("\n", "<br>")
    return shown if key is None else f'<a class=term href="#def-{key}">{shown}</a>'


def linked(text: str) -> str:
    """A sentence as HTML, in which words that have a definition lead to it, each once."""
    html_of, at = "", 0
    for place, end, key in phrases(text):
        html_of += escaped(text[at:place]) + term(key, text[place:end])
        at = end
    return html_of + escaped(text[at:])


def paragraph(text: str, kind: str = "") -> str:
    """`text` is HTML."""
    return f"<p class={kind}>{text}</p>" if kind else f"<p>{text}</p>"


def data_table(headings: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    """Plain texts; all columns but the first `texts` hold numbers."""
    head = "".join(_cell("th", explained(text), place >= texts) for place, text in enumerate(headings))
    body = "".join(
        f"<tr>{''.join(_cell('td', escaped(text), place >= texts) for place, text in enumerate(row))}</tr>\n"
        for row in rows
    )
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"


def folded(summary: str, content: str, aside: bool = False) -> str:
    """Open where there is room for it, and in print; `aside`: there is no need to read it, so it begins closed."""
    kind = " class=aside" if aside else ""
    return f"<details open{kind}><summary>{escaped(summary)}</summary>\n{content}\n</details>"


def rich_table(table: Table, sides: bool = False) -> str:
    """One of the tables of `harness.analysis`, with links to definitions from headings and first cells.

    `sides`: each column but the first is of another side; they are equally wide, and rows that differ stand out.
    """
    columns = table.columns
    is_right = [column.justify == "right" for column in columns]
    named = _headings([_plain(column.header) for column in columns])
    head = "".join(_cell("th", text, right) for text, right in zip(named, is_right, strict=True))
    rows = list(zip(*(column.cells for column in columns), strict=True))
    differ = [sides and len({alike(_plain(cell)) for cell in row[1:]}) > 1 for row in rows]
    body = "".join(
        f"<tr{' class=differs' if differs else ''}>{_row(row, is_right)}</tr>\n"
        for row, differs in zip(rows, differ, strict=True)
    )
    kind = f' class=sides style="min-width:{8 + 9 * (len(columns) - 1)}rem"' if sides else ""
    heading = f"<thead><tr>{head}</tr></thead>\n" if table.show_header else ""
    return f"<div class=scroll><table{kind}>{heading}<tbody>\n{body}</tbody></table></div>"


def alike(cell: str) -> str:
    """What is compared of a cell: every run that begins with a nonce has one of its own."""
    return re.sub(r"^nonce \S+", "nonce", cell)


def _headings(texts: Sequence[str]) -> list[str]:
    """In the tables the first of several columns names what they are of: "TTFT p50", then "p90"."""
    named, group = [], ""
    for text in texts:
        first, _, second = text.partition("\n")
        group = first or group
        key = key_of(text) or key_of(f"{group} {second}") or key_of(group) or key_of(second)
        shown = escaped(text.replace("-\n", "")).replace("\n", "<br>")
        named.append(f'<a class=term href="#def-{key}">{shown}</a>' if key and text.strip() else shown)
    return named


def _row(row: Sequence[RenderableType], is_right: Sequence[bool]) -> str:
    texts = [_plain(cell) for cell in row]
    shown = [explained(text) if place == 0 else _noted(text).replace("\n", "<br>") for place, text in enumerate(texts)]
    return "".join(_cell("td", text, right) for text, right in zip(shown, is_right, strict=True))


def _noted(text: str) -> str:
    """The number of a note leads to it."""
    return re.sub(rf"(?<={UNKNOWN} )\[(\d+)\]", r'<a class=term href="#note-\1">[\1]</a>', escaped(text))


def _plain(thing: RenderableType) -> str:
    return (thing if isinstance(thing, Text) else _CONSOLE.render_str(str(thing))).plain


def _cell(tag: str, text: str, right: bool) -> str:
    return f"<{tag}{' class=right' if right else ''}>{text}</{tag}>"
