"""The report as one HTML page that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import vl_convert

from harness import __version__
from harness.analysis.numbers import UNKNOWN
from harness.analysis.run import Run
from harness.analysis.tables import Footnotes
from harness.analysis.target_tables import check_table, identity_table
from harness.errors import InputError
from harness.record.storage import Folder
from harness.report.findings import Findings, find
from harness.report.flags import Flag
from harness.report.glossary import ENTRIES
from harness.report.markup import escaped, folded, paragraph, rich_table, term
from harness.report.palette import DARK, LIGHT, Spec, variables
from harness.report.plot import CONFIG, VERSION, Key, Plot, keys, without_legend
from harness.report.section import Section
from harness.report.sections import sections
from harness.report.side import Reported
from harness.report.verdict import duration

PAGE = "report.html"
_ASSETS = Path(__file__).parent / "page"
_TOLD_IN_FULL = 2
"""Of so many sides each flag is told by itself; of more those that are good stand in one line."""
_SIGNS = {"good": "\u2713", "bad": "!", "open": "?"}


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


def plots_of(reported: Reported) -> list[Plot]:
    """All plots of the page."""
    return [plot for part in sections(reported, findings(reported), Footnotes()) for plot in part.plots]


def document(reported: Reported) -> str:
    """The page. Its plots are drawn by Vega-Lite, which is part of it."""
    notes = Footnotes()
    found = findings(reported)
    identity = _identity(reported, notes)
    checks = _flags(reported, found, notes)
    parts = sections(reported, found, notes)
    plots = [plot for part in parts for plot in part.plots]
    body = "\n".join(
        [
            _head(reported),
            _verdicts(found),
            _contents(parts),
            identity,
            checks,
            *map(_section, parts),
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


# --- above the plots ---------------------------------------------------------------------------------------------


def _head(reported: Reported) -> str:
    lines = "".join(f"<p class=run>{_about(run)}</p>" for run in reported.runs)
    heading = "Report" if len(reported.runs) == 1 else f"Report of {len(reported.runs)} runs"
    return f"<header><h1>{heading}</h1>{lines}</header>"


def _about(run: Run) -> str:
    manifest = run.manifest
    began = datetime.fromtimestamp(manifest.started_ns // 1_000_000_000, UTC)
    lasted = "" if manifest.ended_ns is None else f", {duration((manifest.ended_ns - manifest.started_ns) / 1e9)}"
    n = len(manifest.targets)
    order = "at the same time" if manifest.together else "one after the other"
    targets = f", {n} targets {order}" if n > 1 else ""
    return (
        f"<b>{escaped(manifest.run_id)}</b> {escaped(manifest.state)}: scenario {escaped(manifest.scenario_name)}"
        f"{targets}, {began:%Y-%m-%d %H:%M} UTC{lasted}"
    )


def _verdicts(found: Sequence[Findings]) -> str:
    cards = [
        f"<div class=verdict>{f'<h3>{escaped(one.side.name)}</h3>' if one.side.name else ''}"
        f"<p>{' </p><p>'.join(map(escaped, one.verdict))}</p></div>"
        for one in found
    ]
    return f'<section id="verdict" class="cards">{"".join(cards)}</section>'


def _contents(parts: Sequence[Section]) -> str:
    places = [
        ("identity", "Who answered"),
        ("validity", "Can it be trusted"),
        *((part.key, part.title) for part in parts),
    ]
    links = "".join(f'<a href="#{key}">{escaped(title)}</a>' for key, title in [*places, ("glossary", "Definitions")])
    return f"<nav>{links}</nav>"


def _identity(reported: Reported, notes: Footnotes) -> str:
    table = rich_table(identity_table(reported.tables, notes))
    urls = " ".join(dict.fromkeys(side.summary.url or UNKNOWN for side in reported.sides))
    return f'<section id="identity"><h2>Who answered</h2>{paragraph(escaped(urls), "lead")}{table}</section>'


def _flags(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> str:
    lists = []
    for one in found:
        heading = f"<h3>{escaped(one.side.name)}</h3>" if one.side.name else ""
        items = "".join(
            _flag(flag.verdict, _named(flag), escaped(flag.sentence))
            for flag in one.flags
            if len(found) <= _TOLD_IN_FULL or flag.verdict != "good"
        )
        if len(found) > _TOLD_IN_FULL:
            good = ", ".join(_named(flag) for flag in one.flags if flag.verdict == "good")
            items += _flag("good", "no doubt", good)
        lists.append(f"<div>{heading}<ul class=flags>{items}</ul></div>")
    table = check_table(reported.tables, notes)
    probes = "" if table is None else folded("The start-up check", rich_table(table))
    return (
        f'<section id="validity"><h2>Can it be trusted</h2><div class="cards">{"".join(lists)}</div>{probes}</section>'
    )


def _flag(verdict: str, name: str, sentence: str) -> str:
    return f"<li class={verdict}><i>{_SIGNS[verdict]}</i><span><b>{name}</b> {sentence}</span></li>"


def _named(flag: Flag) -> str:
    return term(flag.key, flag.name) if flag.key else escaped(flag.name)


# --- plots -------------------------------------------------------------------------------------------------------


def _section(part: Section) -> str:
    columns = []
    for place, column in enumerate(part.columns):
        heading = f"<h3>{escaped(part.headings[place])}</h3>" if part.headings else ""
        columns.append(f"<div>{heading}{''.join(map(_figure, column))}</div>")
    return (
        f'<section id="{part.key}"><h2>{escaped(part.title)}</h2>\n<p class=lead>{part.lead}</p>\n'
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
        f'<figure id="plot-{plot.name}"><figcaption><b>{escaped(plot.title)}</b> {escaped(plot.unit)}</figcaption>'
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
    items = "".join(f"<li>{escaped(line)}</li>" for line in [*lines, *notes.all()])
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
