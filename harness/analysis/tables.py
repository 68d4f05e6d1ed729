"""The report's tables: latency and token hit rate by kind of session, runs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.table import Table

from harness.analysis.latency import ROUGH_BELOW, Percentiles
from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent, tokens, whole_percent
from harness.analysis.summary import Group, Summary, Times

WARMTHS = ("cold", "warm", "all")

_WITH_FAILURES = "+failed: the row above with each failed request as infinitely slow."
_ROUGH = f"* of fewer than {ROUGH_BELOW} values: little more than their maximum."
_UNKNOWN_TIME = f"{UNKNOWN} as a time: no successful request has it (a stamp is missing, or the clock was set)."
_UNKNOWN_TPOT = f"{UNKNOWN} as TPOT: no answer has two or more output tokens with a known count."
_STATES = (
    "with both: requests that report cached and prompt tokens; of ok: their share of the successful ones; "
    "none, some, null: requests that report 0 cached tokens, more, or nothing."
)
_UNKNOWN_HITS = f"{UNKNOWN} as hit rate: no request of the row reports both cached and prompt tokens; that is not 0."


@dataclass(slots=True)
class Footnotes:
    """Explanations that a table needs, each once, in order of need."""

    lines: list[str] = field(default_factory=list)

    def need(self, line: str) -> None:
        if line not in self.lines:
            self.lines.append(line)


def kinds(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """(kind, scenario) of all groups, in order of appearance."""
    return list(dict.fromkeys((group.kind, group.scenario) for summary in summaries for group in summary.groups))


def latency_table(summaries: Sequence[Summary], kind: str, scenario: str, notes: Footnotes) -> Table:
    """One row for each warmth and run, a second one where requests failed."""
    table = _table(summaries)
    for heading in ("n", "failed", "TTFT\np50", "\np90", "\np99", "due\np50", "TPOT\np50", "E2E\np50", "\np90"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=6)
    for run, group in _rows(summaries, kind, scenario):
        table.add_row(*run, group.warmth, count(group.requests), count(group.failed), *_times(group.times, notes))
        if group.times_with_failures is not None:
            notes.need(_WITH_FAILURES)
            table.add_row(*[""] * len(run), "+failed", "", "", *_times(group.times_with_failures, notes))
    return table


def hit_table(summaries: Sequence[Summary], kind: str, scenario: str, notes: Footnotes) -> Table:
    """Token hit rate with its coverage, and the three states of the requests."""
    table = _table(summaries)
    for heading in (
        "prompt\ntokens",
        "cached\ntokens",
        "hit\nrate",
        "with\nboth",
        "of\nok",
        "cached\nnone",
        "\nsome",
        "\nnull",
    ):
        table.add_column(heading, justify="right", no_wrap=True, min_width=6)
    for run, group in _rows(summaries, kind, scenario):
        hits = group.hit_rate
        notes.need(_STATES)
        if hits.rate is None:
            notes.need(_UNKNOWN_HITS)
        table.add_row(
            *run,
            group.warmth,
            tokens(hits.prompt_tokens),
            tokens(hits.cached_tokens),
            percent(hits.rate),
            count(hits.reporting),
            whole_percent(hits.ok_reporting / hits.ok if hits.ok else None),
            count(hits.cached_none),
            count(hits.cached_some),
            count(hits.cached_unknown),
        )
    return table


def _table(summaries: Sequence[Summary]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    if len(summaries) > 1:
        table.add_column("run", justify="right", no_wrap=True)
    table.add_column("turns", no_wrap=True)
    return table


def _rows(summaries: Sequence[Summary], kind: str, scenario: str) -> Iterator[tuple[list[str], Group]]:
    """(cell with the run's number, if there are several; group), with the runs of one warmth next to each other."""
    for warmth in WARMTHS:
        for number, summary in enumerate(summaries, start=1):
            for group in summary.groups:
                if (group.kind, group.scenario, group.warmth) == (kind, scenario, warmth):
                    yield ([str(number)] if len(summaries) > 1 else []), group


def _times(times: Times, notes: Footnotes) -> list[str]:
    ttft = times.ttft
    cells = [ttft.p50, ttft.p90, ttft.p99, times.ttft_due.p50, times.tpot.p50, times.e2e.p50, times.e2e.p90]
    if any(times.n == 0 for times in (ttft, times.ttft_due, times.e2e)):
        notes.need(_UNKNOWN_TIME)
    if times.tpot.n == 0:
        notes.need(_UNKNOWN_TPOT)
    texts = [milliseconds(cell) for cell in cells]
    texts[2] = p99(ttft, notes)
    return texts


def p99(values: Percentiles, notes: Footnotes) -> str:
    """In ms, marked if it is of few values."""
    text = milliseconds(values.p99)
    if values.n and values.p99_is_rough:
        notes.need(_ROUGH)
        return f"{text}*"
    return text
