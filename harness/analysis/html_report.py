"""The report as a page: what `render` prints, with real tables in place of drawn ones."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from harness.analysis.report import render
from harness.analysis.run import Run

_STYLE = """
body { margin: 2rem auto; max-width: 75rem; padding: 0 1rem; font: 15px/1.45 system-ui, sans-serif; }
main { font-variant-numeric: tabular-nums; }
h2 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
p { margin: .2rem 0; }
.problem { color: #c62828; }
.note { opacity: .7; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: bottom; }
td { vertical-align: top; }
th { border-bottom: 1px solid #8888; font-weight: 600; }
.right { text-align: right; white-space: nowrap; }
@media (prefers-color-scheme: dark) { body { background: #121212; color: #eee; } .problem { color: #ff8a80; } }
"""
_CLASSES = {"red": "problem", "dim": "note"}


def as_html(runs: Sequence[Run]) -> str:
    """A whole page that needs nothing else; the tables are in its `main`."""
    page = _Page()
    render(runs, page)
    title = html.escape(", ".join(run.manifest.run_id for run in runs))
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(page.parts)
    return (
        f"<!doctype html>\n<html lang=en><head>{head}<title>{title}</title><style>{_STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


class _Page(Console):
    """Keeps as HTML what it is to print: texts in the styles of the report, and tables."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.parts: list[str] = []

    def print(self, *objects: Any, style: Any = None, **_: Any) -> None:
        for thing in objects:
            self.parts.append(self._table(thing) if isinstance(thing, Table) else self._line(thing))

    def _line(self, thing: RenderableType) -> str:
        text = self._plain(thing)
        style = str(thing.style) if isinstance(thing, Text) else ""
        if style == "bold":
            return f"<h2>{text}</h2>"
        return f'<p class="{_CLASSES[style]}">{text}</p>' if style in _CLASSES else f"<p>{text}</p>"

    def _table(self, table: Table) -> str:
        columns = table.columns
        head = "".join(_cell("th", column, self._plain(column.header)) for column in columns)
        rows = zip(*(column.cells for column in columns), strict=True)
        body = "".join(f"<tr>{self._row(columns, row)}</tr>\n" for row in rows)
        heading = f"<thead><tr>{head}</tr></thead>\n" if table.show_header else ""
        return f"<div class=scroll><table>{heading}<tbody>\n{body}</tbody></table></div>"

    def _row(self, columns: Sequence[Column], row: Sequence[RenderableType]) -> str:
        return "".join(_cell("td", column, self._plain(cell)) for column, cell in zip(columns, row, strict=True))

    def _plain(self, thing: RenderableType) -> str:
        text = thing if isinstance(thing, Text) else self.render_str(str(thing))
        return html.escape(text.plain).replace("\n", "<br>")


def _cell(tag: str, column: Column, text: str) -> str:
    return f"<{tag}{' class=right' if column.justify == 'right' else ''}>{text}</{tag}>"
