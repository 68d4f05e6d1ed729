"""A few runs of one scenario in one small table: what the setting that tells them apart has done."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table

from harness.analysis.numbers import count, milliseconds, percent, whole_percent
from harness.analysis.summary import Group, Summary
from harness.analysis.tables import WARMTHS, Footnotes, p99

TIMES = "n: requests, fail: failed ones, which are not in the times (ms)."
COVERAGE = (
    "hit rate: cached / prompt tokens, summed over the requests that report both; cover: the share of the successful "
    "ones that do; counters: the same from the server's own counters, which tell of whole runs only."
)


def side_by_side(setting: str, summaries: Mapping[str, Summary], notes: Footnotes) -> Table:
    """Rows by value of `setting` (the keys of `summaries`) and warmth; two hit rates, by request and by counters."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for heading in (setting, "turns"):
        table.add_column(heading, no_wrap=True)
    for heading in ("n", "fail", "TTFT\np50", "\np90", "\np99", "TPOT\np50", "E2E\np50"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("hit rate\nrequests", "\ncover", "\ncounters"):
        table.add_column(heading, justify="right", no_wrap=True)
    notes.need(TIMES)
    notes.need(COVERAGE)
    for value, summary in summaries.items():
        for warmth in WARMTHS:
            for group in summary.groups:
                if group.warmth == warmth:
                    table.add_row(value, warmth, *_cells(group, notes), _counters(summary, warmth))
        table.add_section()
    return table


def _cells(group: Group, notes: Footnotes) -> list[str]:
    ttft, hits = group.times.ttft, group.hit_rate
    times = (group.times.tpot.p50, group.times.e2e.p50)
    return [
        count(group.requests),
        count(group.failed),
        *(milliseconds(value) for value in (ttft.p50, ttft.p90)),
        p99(ttft, notes),
        *(milliseconds(value) for value in times),
        percent(hits.rate),
        whole_percent(hits.ok_reporting / hits.ok if hits.ok else None),
    ]


def _counters(summary: Summary, warmth: str) -> str:
    return percent(summary.counters.rate) if warmth == "all" else ""


def proof(setting: str, summaries: Mapping[str, Summary]) -> list[str]:
    """The two kinds of evidence in words: what counters and requests say of each other, and cold against warm TTFT."""
    lines = []
    for value, summary in summaries.items():
        ratio = summary.warm_to_cold[0].ratio if summary.warm_to_cold else None
        times = "" if ratio is None else f"warm TTFT is {ratio:.2f} of cold; "
        lines.append(f"{setting} {value}: {times}counters and requests: {summary.agreement.sentence()}")
    return lines
