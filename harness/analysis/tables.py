"""The report's tables of the requests: latency and token hit rate by kind of session, targets side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from harness.analysis.latency import ROUGH_BELOW, Percentiles
from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent, tokens, whole_percent
from harness.analysis.summary import Group, Summary, Times

WARMTHS = ("cold", "warm", "all")

_N = "n: successful requests whose times count, of which the percentiles are; failed ones stand beside them."
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
    reasons: list[str] = field(default_factory=list)

    def need(self, line: str) -> None:
        if line not in self.lines:
            self.lines.append(line)

    def unknown(self, reason: str | None) -> str:
        """The cell of a number that is not known, with the number of the note that says why."""
        if not reason:
            return UNKNOWN
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"{UNKNOWN} [{self.reasons.index(reason) + 1}]"

    def all(self) -> list[str]:
        return [
            *self.lines,
            *(f"[{number}] {reason.rstrip('.')}." for number, reason in enumerate(self.reasons, start=1)),
        ]


@dataclass(frozen=True, slots=True)
class Sides:
    """What stands side by side: the targets of all runs, numbered from 1."""

    summaries: Sequence[Summary]
    word: str = "run"
    """What a number stands for, where there are several: run or target."""

    def numbered(self) -> Iterator[tuple[list[str], Summary]]:
        """(cell with the number, if there are several; summary)."""
        for number, summary in enumerate(self.summaries, start=1):
            yield ([str(number)] if len(self.summaries) > 1 else []), summary

    def table(self, *headings: str) -> Table:
        """An empty one, with a column for the number if there are several."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
        if len(self.summaries) > 1:
            table.add_column(self.word, justify="right", no_wrap=True)
        for heading in headings:
            table.add_column(heading, no_wrap=True)
        return table

    def columns(self, justify: JustifyMethod = "left") -> Table:
        """An empty one that names a property in its first column and has a column for each side."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=len(self.summaries) > 1)
        table.add_column("", no_wrap=True)
        for number, summary in self.numbered():
            table.add_column(Text(f"{self.name(number)} = {summary.target}"), overflow="fold", justify=justify)
        return table

    def name(self, number: Sequence[str]) -> str:
        """Such as "run 2"; empty if there is only one."""
        return f"{self.word} {number[0]}" if number else ""

    def prefix(self, number: Sequence[str]) -> str:
        """Such as "run 2: ", to begin a sentence with."""
        return f"{self.name(number)}: " if number else ""


def kinds(sides: Sides) -> list[tuple[str, str]]:
    """(kind, scenario) of all groups, in order of appearance."""
    return list(dict.fromkeys((group.kind, group.scenario) for summary in sides.summaries for group in summary.groups))


def latency_table(sides: Sides, kind: str, scenario: str, notes: Footnotes) -> Table:
    """One row for each warmth and side, a second one where requests failed."""
    table = sides.table("turns")
    for heading in ("n", "failed", "TTFT\np50", "\np90", "\np99", "due\np50", "TPOT\np50", "E2E\np50", "\np90"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=6)
    for number, group in _rows(sides, kind, scenario):
        notes.need(_N)
        table.add_row(
            *number, group.warmth, count(group.times.ttft.n), count(group.failed), *_times(group.times, notes)
        )
        if group.times_with_failures is not None:
            notes.need(_WITH_FAILURES)
            table.add_row(*[""] * len(number), "+failed", "", "", *_times(group.times_with_failures, notes))
    return table


def hit_table(sides: Sides, kind: str, scenario: str, notes: Footnotes) -> Table:
    """Token hit rate with its coverage, and the three states of the requests."""
    table = sides.table("turns")
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
    for number, group in _rows(sides, kind, scenario):
        hits = group.hit_rate
        notes.need(_STATES)
        if hits.rate is None:
            notes.need(_UNKNOWN_HITS)
        table.add_row(
            *number,
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


def _rows(sides: Sides, kind: str, scenario: str) -> Iterator[tuple[list[str], Group]]:
    """(cell with the number, group), with the sides of one warmth next to each other."""
    for warmth in WARMTHS:
        for number, summary in sides.numbered():
            for group in summary.groups:
                if (group.kind, group.scenario, group.warmth) == (kind, scenario, warmth):
                    yield number, group


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


def p99(values: Percentiles, notes: Footnotes, shown: Callable[[float | None], str] = milliseconds) -> str:
    """In ms, marked if it is of few values."""
    text = shown(values.p99)
    if values.n and values.p99_is_rough:
        notes.need(_ROUGH)
        return f"{text}*"
    return text
