"""The report of one run, or of several side by side: text for people, JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent
from harness.analysis.run import Run
from harness.analysis.summary import Summary, summarise
from harness.analysis.tables import Footnotes, hit_table, kinds, latency_table, p99


def render(runs: Sequence[Run], console: Console) -> None:
    """Print the tables; they need 80 columns."""
    summaries = [summarise(run) for run in runs]
    for number, summary in enumerate(summaries, start=1):
        _say(console, _legend(number, summary, len(summaries)), style="bold")
    notes = Footnotes()
    for kind, scenario in kinds(summaries):
        for title, table in (("latency in ms", latency_table), ("token hit rate, as reported per request", hit_table)):
            console.print()
            _say(console, f"{kind} (scenario {scenario}): {title}", style="bold")
            console.print(table(summaries, kind, scenario, notes))
        for line in _warm_to_cold(summaries, kind, scenario):
            _say(console, line)
    for number, summary in enumerate(summaries, start=1):
        console.print()
        _say(console, f"Run {number}: how far to trust it" if len(summaries) > 1 else "How far to trust it", "bold")
        console.print(_checks(summary, notes))
        for problem in summary.problems:
            _say(console, f"Problem: {problem}", style="red")
        for sentence in summary.notes:
            _say(console, f"Note: {sentence}")
    if notes.lines:
        console.print()
    for note in notes.lines:
        _say(console, note, style="dim")


def as_json(runs: Sequence[Run]) -> str:
    """The same numbers as JSON text: {"runs": [...]}, keys as the fields of `harness.analysis.summary.Summary`.

    Null is "not known"; an infinite percentile is the text "inf".
    """
    summaries = [asdict(summarise(run)) for run in runs]
    return json.dumps(_without_infinity({"runs": summaries}), indent=2, allow_nan=False)


def _without_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinity(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _say(console: Console, text: str, style: str = "") -> None:
    # Text, not markup: names and sentences from a run may hold square brackets.
    console.print(Text(text, style=style))


def _legend(number: int, summary: Summary, runs: int) -> str:
    who = f"{summary.engine} at {summary.target}, model {summary.model}" if summary.groups else "no measured requests"
    name = f"run {number} = {summary.run_id}" if runs > 1 else f"run {summary.run_id}"
    return f"{name} ({summary.state}): scenario {summary.scenario}; {who}"


def _warm_to_cold(summaries: Sequence[Summary], kind: str, scenario: str) -> Iterator[str]:
    for number, summary in enumerate(summaries, start=1):
        for pair in summary.warm_to_cold:
            if (pair.kind, pair.scenario) != (kind, scenario):
                continue
            run = f"run {number}: " if len(summaries) > 1 else ""
            if pair.ratio is None:
                yield f"{run}warm TTFT against cold: {UNKNOWN} (it takes successful requests of both)"
            else:
                both = f"medians {milliseconds(pair.warm_ttft_ms)} and {milliseconds(pair.cold_ttft_ms)} ms"
                yield f"{run}warm TTFT is {pair.ratio:.2f} of cold ({both})"


def _checks(summary: Summary, notes: Footnotes) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    rows = [
        ("requests not ok", _statuses(summary)),
        ("hit rate, per request", _hits(summary)),
        ("hit rate, counters", _counters(summary)),
        ("counters and requests", summary.agreement.sentence()),
        ("planned prompt lengths", _planned(summary)),
        ("arrival stamps", _stamps(summary, notes)),
        ("harness late by", _late(summary, notes)),
    ]
    if summary.chunks_counted:
        rows.append(("output tokens", f"one a chunk for {summary.chunks_counted} requests: their TPOT is per chunk"))
    for name, text in rows:
        grid.add_row(name, Text(text))
    return grid


def _statuses(summary: Summary) -> str:
    totals: dict[str, int] = {}
    for group in summary.groups:
        if group.warmth == "all":
            for status, n in group.by_status.items():
                totals[status] = totals.get(status, 0) + n
    return ", ".join(f"{n} {status}" for status, n in sorted(totals.items())) or "none"


def _hits(summary: Summary) -> str:
    hits = summary.hit_rate
    if hits.rate is None:
        return f"{UNKNOWN} (none of {hits.requests} requests reports both cached and prompt tokens)"
    tokens = f"{count(hits.cached_tokens)} of {count(hits.prompt_tokens)} tokens"
    return f"{percent(hits.rate)}: {tokens}, reported by {hits.reporting} of {hits.requests} requests"


def _counters(summary: Summary) -> str:
    counters = summary.counters
    if counters.rate is None:
        return f"{UNKNOWN} ({counters.reason})"
    tokens = f"{count(counters.cached_tokens)} of {count(counters.prompt_tokens)} tokens"
    return f"{percent(counters.rate)}: {tokens}, from {counters.since} to after"


def _planned(summary: Summary) -> str:
    lengths = summary.planned_lengths
    if not lengths.compared:
        return f"{UNKNOWN} (no request has both a planned and a reported length)"
    text = f"exact for {lengths.exact} of {lengths.compared} requests ({percent(lengths.exact / lengths.compared)})"
    return (
        text if lengths.exact == lengths.compared else f"{text}, at most {lengths.largest_difference_tokens} tokens off"
    )


def _stamps(summary: Summary, notes: Footnotes) -> str:
    stamps = summary.stamps
    clocks = ", ".join(f"{clock} clock for {n} requests" for clock, n in stamps.by_clock.items()) or "no output arrived"
    error = (
        f"error p99 {p99(stamps.error_ms, notes)} ms" if stamps.error_ms.n else f"error {UNKNOWN} (no kernel stamps)"
    )
    text = f"{clocks}; {error}; {percent(stamps.coalesced_share)} of the chunks coalesced"
    return f"{text}; the clock was set during {stamps.clock_steps} requests" if stamps.clock_steps else text


def _late(summary: Summary, notes: Footnotes) -> str:
    late = summary.stamps.late_ms
    return f"p99 {p99(late, notes)} ms" if late.n else f"{UNKNOWN} (no request was sent)"
