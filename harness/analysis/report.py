"""The report of one run, or of several side by side: text for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analysis.flags import doubts, flags
from harness.analysis.level_table import level_table
from harness.analysis.numbers import UNKNOWN, between, with_unit
from harness.analysis.run import Run
from harness.analysis.summary import Summary, summarise
from harness.analysis.tables import Footnotes, Sides, hit_table, kinds, latency_table
from harness.analysis.target_tables import check_table, identity_table, server_table
from harness.analysis.throughput_table import throughput_table
from harness.analysis.trust import trust_table
from harness.analysis.waterfall_table import waterfall_lines, waterfall_table
from harness.analysis.working_set_table import working_set_table


def render(runs: Sequence[Run], console: Console) -> None:
    """Print the tables; those of requests need 80 columns. The targets of all runs stand side by side."""
    by_run = [[summarise(of_target) for of_target in run.by_target()] for run in runs]
    is_single = all(len(summaries) == 1 for summaries in by_run)
    sides = Sides([summary for summaries in by_run for summary in summaries], "run" if is_single else "target")
    notes = Footnotes()
    named = [(run, f" of {run.manifest.run_id}" if len(runs) > 1 else "") for run in runs]
    for line in _legend(runs, sides):
        _say(console, line, style="bold")
    for run, which in named:
        for problem in run.problems:
            _say(console, f"Problem{which}: {problem}", style="red")
    for number, summary in sides.numbered():
        for flag in doubts(summary):
            _say(console, f"Problem: {sides.prefix(number)}{flag.name}: {flag.sentence}", style="red")
    _section(console, "Who answered", identity_table(sides, notes))
    _section(console, "Start-up check", check_table(sides, notes))
    for number, summary in sides.numbered():
        if summary.check:
            _say(console, f"{sides.prefix(number)}{summary.check.sentence}")
    _modelled(console, "Where the hit rate went, in tokens", waterfall_table(sides, notes), sides)
    for number, summary in sides.numbered():
        for line in waterfall_lines(summary.waterfall):
            _say(console, f"{sides.prefix(number)}{line}")
    _modelled(console, "By level of the prompts, in tokens", level_table(sides, notes), sides)
    _modelled(console, "Working set over time, in tokens", working_set_table(sides, notes), sides)
    for number, summary in sides.numbered():
        for sentence in summary.achieved.sentences():
            _say(console, f"{sides.prefix(number)}{sentence}{summary.coverage.beside()}")
        if summary.arrived:
            _say(console, f"{sides.prefix(number)}{summary.arrived.sentence()}")
    for kind, scenario in kinds(sides):
        of_kind = f"{kind} (scenario {scenario})"
        _section(console, f"{of_kind}: latency in ms", latency_table(sides, kind, scenario, notes))
        _section(
            console, f"{of_kind}: token hit rate, as reported per request", hit_table(sides, kind, scenario, notes)
        )
        for line in _warm_to_cold(sides, kind, scenario):
            _say(console, line)
    _section(console, "Throughput", throughput_table(sides, notes))
    _section(console, "The server's own figures", server_table(sides, notes))
    for number, summary in sides.numbered():
        title = f"{sides.name(number).capitalize()}: how far to trust it" if number else "How far to trust it"
        _section(console, title, trust_table(summary, notes))
    _paragraph(console, [("", f"Note{which}: {sentence}") for run, which in named for sentence in run.manifest.notes])
    for number, summary in sides.numbered():
        herds = summary.herds.sentence()
        marked = (flag for flag in flags(summary) if flag.key == "bottleneck" and summary.health.marked)
        slight = [flag.sentence for flag in marked if flag.verdict == "open"]
        sentences = (*summary.contamination.notes, *slight, f"{herds}{summary.coverage.beside()}" if herds else None)
        _paragraph(console, [("", f"Note: {sides.prefix(number)}{sentence}") for sentence in sentences if sentence])
    _paragraph(console, [("dim", note) for note in notes.all()])


def as_json(runs: Sequence[Run]) -> str:
    """The same numbers as JSON text: {"runs": [{..., "targets": [...]}, ...]}.

    The keys of a target are the fields of `harness.analysis.summary.Summary`, and `problems`: what makes its numbers
    doubtful, each with a name and a sentence; those of a run are of its record. Null is "not known"; an infinite
    percentile is the text "inf".
    """
    return json.dumps({"runs": [_run_as_json(run) for run in runs]}, indent=2, allow_nan=False)


def _run_as_json(run: Run) -> dict[str, Any]:
    return {
        "run_id": run.manifest.run_id,
        "state": run.manifest.state,
        "scenario": run.manifest.scenario_name,
        "together": run.manifest.together,
        "targets": [_target_as_json(summarise(of_target)) for of_target in run.by_target()],
        "problems": list(run.problems),
        "notes": run.manifest.notes,
    }


def _target_as_json(summary: Summary) -> dict[str, Any]:
    problems = [{"name": flag.name, "sentence": flag.sentence} for flag in doubts(summary)]
    return {**_plain(asdict(summary)), "problems": problems}


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _legend(runs: Sequence[Run], sides: Sides) -> Iterator[str]:
    """Which number stands for what."""
    numbered = sides.numbered()
    for run in runs:
        manifest = run.manifest
        what = f"{manifest.run_id} ({manifest.state}): scenario {manifest.scenario_name}"
        if sides.word == "run":
            number, summary = next(numbered)
            yield f"{sides.name(number)} = {what}; {_who(summary)}" if number else f"run {what}; {_who(summary)}"
        else:
            n = len(manifest.targets)
            order = "at the same time" if manifest.together else "one after the other"
            yield f"run {what}; {f'{n} targets, {order}' if n > 1 else '1 target'}"
            for number, summary in islice(numbered, n):
                yield f"  {sides.name(number)} = {summary.target}: {_who(summary)}"


def _who(summary: Summary) -> str:
    who = f"{summary.identity.get('engine', UNKNOWN)} at {summary.url or summary.target}"
    return f"{who}, model {summary.identity.get('model', UNKNOWN)}{'' if summary.groups else '; no measured requests'}"


def _section(console: Console, title: str, table: Table | None) -> None:
    if table is not None:
        console.print()
        _say(console, title, style="bold")
        console.print(table)


def _modelled(console: Console, title: str, table: Table | None, sides: Sides) -> None:
    """As `_section`, and what the table covers, where that is not all."""
    _section(console, title, table)
    for number, summary in sides.numbered() if table is not None else ():
        if sentence := summary.coverage.sentence():
            _say(console, f"{sides.prefix(number)}{sentence}", style="dim")


def _paragraph(console: Console, lines: Sequence[tuple[str, str]]) -> None:
    """(style, text) of each line; nothing at all if there is none."""
    if lines:
        console.print()
    for style, text in lines:
        _say(console, text, style)


def _say(console: Console, text: str, style: str = "") -> None:
    # Text, not markup: names and sentences from a run may hold square brackets.
    console.print(Text(text, style=style))


def _warm_to_cold(sides: Sides, kind: str, scenario: str) -> Iterator[str]:
    for number, summary in sides.numbered():
        for pair in summary.warm_to_cold:
            if (pair.kind, pair.scenario) != (kind, scenario):
                continue
            if pair.ratio is None or pair.warm_ttft_ms is None or pair.cold_ttft_ms is None:
                text = f"warm TTFT against cold: {UNKNOWN} (it takes successful requests of both)"
            else:
                both = between(pair.warm_ttft_ms, pair.cold_ttft_ms, with_unit, "and")
                text = f"warm TTFT is {pair.ratio:.2f} of cold (medians {both})"
            yield f"{sides.prefix(number)}{text}"
