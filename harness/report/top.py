"""What stands above the plots: the verdicts, who answered, and whether it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from harness.analysis.flags import Flag
from harness.analysis.numbers import UNKNOWN
from harness.analysis.run import Run
from harness.analysis.tables import Footnotes, Sides
from harness.analysis.target_tables import check_table, identity_table
from harness.report.findings import Findings
from harness.report.markup import alike, escaped, folded, linked, paragraph, rich_table, term
from harness.report.section import Section
from harness.report.side import Reported
from harness.report.sweep_section import sweep_of
from harness.report.verdict import duration

_TOLD_IN_FULL = 2
"""Of so many sides each flag is told by itself; of more those that are good stand in one line."""
_SIGNS = {"good": "\u2713", "bad": "!", "open": "?"}


def head(reported: Reported) -> str:
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


def verdicts(found: Sequence[Findings]) -> str:
    """Of all sides, below what they show together if they are those of a sweep."""
    together = sweep_of(found)
    headline = "".join(f"<p class=headline>{linked(one)}</p>" for one in (together.sentences() if together else ()))
    small = " small" if len(found) > _TOLD_IN_FULL else ""
    cards = "".join(f'<div class="verdict{small}">{_verdict(one)}</div>' for one in found)
    return f'<section id="verdict">{headline}<div class="cards">{cards}</div></section>'


def _verdict(one: Findings) -> str:
    """What makes it doubtful is marked."""
    doubt = f"<i>{_SIGNS['bad']}</i>" if any(flag.verdict == "bad" for flag in one.flags) else ""
    heading = f"<h3>{escaped(one.side.name)}</h3>" if one.side.name else ""
    *first, last = (linked(sentence) for sentence in one.verdict)
    kind = ' class="doubt bad"' if doubt else ""
    return f"{heading}{''.join(map(paragraph, first))}<p{kind}>{doubt}<span>{last}</span></p>"


def contents(parts: Sequence[Section], first: int) -> str:
    """`first`: so many parts stand before identity and validity."""
    places = [(part.key, part.title) for part in parts]
    places[first:first] = [("identity", "Who answered"), ("validity", "Can it be trusted")]
    links = "".join(f'<a href="#{key}">{escaped(title)}</a>' for key, title in [*places, ("glossary", "Definitions")])
    return f"<nav>{links}</nav>"


def identity(reported: Reported, notes: Footnotes) -> str:
    """A column for each that answered; those that are alike share one."""
    summaries, word = reported.tables.summaries, reported.tables.word
    table = identity_table(reported.tables, notes)
    lead = " ".join(dict.fromkeys(side.summary.url or UNKNOWN for side in reported.sides))
    alike_ones: dict[tuple[str, ...], list[int]] = {}
    for number, column in enumerate(table.columns[1:], start=1):
        alike_ones.setdefault(tuple(map(alike, map(str, column.cells))), []).append(number)
    groups = list(alike_ones.values())
    if len(groups) < len(summaries):
        table = identity_table(Sides([summaries[numbers[0] - 1] for numbers in groups], word), notes)
        for numbers, column in zip(groups, table.columns[1:], strict=True):
            column.header = f"{word}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    if len(groups) == 1 < len(summaries):
        all_of = "both" if len(summaries) == 2 else f"all {len(summaries)}"
        lead = f"The same in {all_of}. {lead}"
    return (
        f'<section id="identity"><h2>Who answered</h2>{paragraph(escaped(lead), "lead")}'
        f"{rich_table(table, sides=len(groups) > 1)}</section>"
    )


def validity(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> str:
    lists = []
    for one in found:
        heading = f"<h3>{escaped(one.side.name)}</h3>" if one.side.name else ""
        items = "".join(
            _flag(flag.verdict, _named(flag), linked(flag.sentence))
            for flag in one.flags
            if len(found) <= _TOLD_IN_FULL or flag.verdict != "good"
        )
        if len(found) > _TOLD_IN_FULL:
            good = ", ".join(_named(flag) for flag in one.flags if flag.verdict == "good")
            items += _flag("good", "no doubt", good)
        lists.append(f"<div>{heading}<ul class=flags>{items}</ul></div>")
    table = check_table(reported.tables, notes)
    well = all(flag.verdict == "good" for one in found for flag in one.flags if flag.key == "check")
    probes = "" if table is None else folded("The start-up check", rich_table(table), aside=well)
    return (
        f'<section id="validity"><h2>Can it be trusted</h2><div class="cards">{"".join(lists)}</div>{probes}</section>'
    )


def _flag(verdict: str, name: str, sentence: str) -> str:
    return f"<li class={verdict}><i>{_SIGNS[verdict]}</i><span><b>{name}</b> {sentence}</span></li>"


def _named(flag: Flag) -> str:
    return term(flag.key, flag.name) if flag.key else escaped(flag.name)
