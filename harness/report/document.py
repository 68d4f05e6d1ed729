"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

import vl_convert

from harness import __version__
from harness.analysis.tables import Footnotes
from harness.errors import InputError
from harness.record.reader import open_runs
from harness.record.storage import Folder
from harness.report.findings import Findings, find
from harness.report.glossary import ENTRIES
from harness.report.markup import escaped, linked
from harness.report.palette import DARK, LIGHT, Spec, variables
from harness.report.plot import CONFIG, VERSION, Key, Plot, keys, without_legend
from harness.report.section import Section
from harness.report.sections import sections
from harness.report.side import Reported, read
from harness.report.sweep_section import SWEEP
from harness.report.top import contents, head, identity, validity, verdicts

PAGE = "report.html"
_NUMBERED = r"\[(\d+)\] "
_ASSETS = Path(__file__).parent / "page"


def findings(reported: Reported) -> list[Findings]:
    """Of all sides."""
    return [find(side, number) for number, side in enumerate(reported.sides, start=1)]


def write_page(page: str, folder: Folder, name: str = PAGE) -> str:
    """Put the page in place; what a user would call it. Raises InputError if it cannot be written."""
    try:
        folder.write(name, page.encode())
    except OSError as error:
        raise InputError(
            f"{folder.name_of(name)} cannot be written: {error.strerror or error}; give another place."
        ) from error
    return folder.name_of(name)


def write_report(
    names: Sequence[str],
    base: str,
    folder: Folder,
    name: str = PAGE,
    goodput_per_s: Mapping[str, float | None] = MappingProxyType({}),
) -> str:
    """Put a page with all these runs, ids below `base`, in place; what a user would call it.

    `goodput_per_s`: as in `document`. Raises as `open_runs`, `read` and `write_page`.
    """
    return write_page(document(read(open_runs(names, base)), goodput_per_s), folder, name)


def plots_of(reported: Reported) -> list[Plot]:
    """All plots of the page."""
    return [plot for part in sections(reported, findings(reported), Footnotes()) for plot in part.plots]


def document(reported: Reported, goodput_per_s: Mapping[str, float | None] = MappingProxyType({})) -> str:
    """The page. Its plots are drawn by Vega-Lite, which is part of it.

    `goodput_per_s`: run -> requests a second that meet an objective, if there is one.
    """
    notes = Footnotes()
    found = findings(reported)
    answered = identity(reported, notes)
    checks = validity(reported, found, notes)
    parts = sections(reported, found, notes, goodput_per_s)
    of_sweep = [part for part in parts if part.key == SWEEP]
    parts = [*of_sweep, *(part for part in parts if part.key != SWEEP)]
    plots = [plot for part in parts for plot in part.plots]
    body = "\n".join(
        [
            head(reported),
            verdicts(found),
            contents(parts, len(of_sweep)),
            *map(_section, of_sweep),
            answered,
            checks,
            *map(_section, parts[len(of_sweep) :]),
            _notes(reported, found, notes),
            _glossary(),
        ]
    )
    title = escaped(", ".join(run.manifest.run_id for run in reported.runs))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">\n'
        f"<title>kvswarm: {title}</title>\n<style>\n{_style()}</style></head>\n<body><main>\n{body}\n</main>\n"
        f'<script type="application/json" id="plots">{_specs(plots)}</script>\n<script type="module">\n'
        f"{_script()}\n</script>\n"
        "</body></html>\n"
    )


@lru_cache
def _script() -> str:
    """Vega-Lite and what draws with it, as one module; to put them together takes a second or two."""
    return vl_convert.javascript_bundle((_ASSETS / "script.js").read_text(), vl_version=VERSION)


def _style() -> str:
    dark = variables(DARK)
    return (
        f":root {{ {variables(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {dark} }} }}\n"
        f"@media screen {{ :root[data-theme=dark] {{ {dark} }} }}\n"
        f"{(_ASSETS / 'style.css').read_text()}"
    )


def _specs(plots: Sequence[Plot]) -> str:
    specs = {plot.name: without_legend(plot.spec) for plot in plots if plot.spec is not None}
    return json.dumps({"config": CONFIG, "plots": specs}, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")


# --- plots -------------------------------------------------------------------------------------------------------


def _section(part: Section) -> str:
    columns = []
    for place, column in enumerate(part.columns):
        heading = f"<h3>{escaped(part.headings[place])}</h3>" if part.headings else ""
        first, *others = map(_figure, column) if column else ("",)
        columns.append(f"<div><div class=keep>{heading}{first}</div>{''.join(others)}</div>")
    return (
        f'<section id="{part.key}"><div class=keep><h2>{escaped(part.title)}</h2>\n<p class=lead>{part.lead}</p>'
        f"</div>\n"
        f'<div class="columns n{_abreast(len(columns))}">{"".join(columns)}</div>\n{"".join(part.after)}</section>'
    )


def _abreast(columns: int) -> int:
    """Columns side by side: two engines under several pressures stay below each other."""
    return columns if columns < 4 else 3 if columns % 2 else 2


def _figure(plot: Plot) -> str:
    if plot.spec is None:
        return f"<p class=empty>{escaped(plot.missing)}</p>"
    height = int(plot.spec["height"])
    return (
        f'<figure id="plot-{plot.name}"><figcaption><b>{linked(plot.title)}</b> {escaped(plot.unit)}</figcaption>'
        f"{_legend(plot.spec)}"
        f'<div class=plot data-plot="{plot.name}" style="min-height:{height}px">'
        "<noscript>This plot needs JavaScript; its numbers stand in the table.</noscript></div></figure>"
    )


def _legend(spec: Spec) -> str:
    items = "".join(f"<span>{_symbol(key)}{escaped(key.name)}</span>" for key in keys(spec))
    return f"<div class=legend>{items}</div>" if items else ""


def _symbol(key: Key) -> str:
    if key.symbol == "circle":
        return f'<svg width="12" height="12"><circle cx="6" cy="6" r="4.5" fill="{key.colour}"/></svg>'
    dash = ",".join(map(str, key.dash))
    line = f'stroke="{key.colour}" stroke-width="2.5" stroke-dasharray="{dash}"'
    return f'<svg width="24" height="12"><line x1="1" x2="23" y1="6" y2="6" {line}/></svg>'


# --- below them --------------------------------------------------------------------------------------------------


def _notes(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> str:
    lines = [
        f"{run.manifest.run_id}: {note}" if len(reported.runs) > 1 else note
        for run in reported.runs
        for note in run.manifest.notes
    ]
    for one in found:
        summary = one.side.summary
        lines += [
            f"{one.side.prefix}{sentence}"
            for sentence in (*summary.contamination.notes, summary.herds.sentence())
            if sentence
        ]
    items = "".join(
        f"<li{f' id=note-{number[1]}' if (number := re.match(_NUMBERED, line)) else ''}>{escaped(line)}</li>"
        for line in [*lines, *notes.all()]
    )
    return f'<section id="notes"><h2>Notes</h2><ul class=notes>{items}</ul></section>' if items else ""


def _glossary() -> str:
    entries = "".join(
        f'<dt id="def-{entry.key}">{escaped(entry.name)}</dt><dd>{escaped(entry.meaning)}'
        f"{f'<code>{escaped(entry.formula)}</code>' if entry.formula else ''}</dd>"
        for entry in ENTRIES
    )
    return (
        f'<section id="glossary"><h2>Definitions</h2><dl>{entries}</dl></section>\n'
        f"<footer>Made by kvswarm {escaped(__version__)}. Times leave out requests under way while the harness was the "
        "bottleneck; tokens count all.</footer>"
    )
