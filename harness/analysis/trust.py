"""How far the numbers of one target can be trusted: the lines of the report's last part."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from harness.analysis.certainty import MOST_REQUESTS
from harness.analysis.counters import CounterRate, Stretch
from harness.analysis.numbers import UNKNOWN, count, percent, with_unit
from harness.analysis.pages import clock_time
from harness.analysis.summary import Summary
from harness.analysis.tables import Footnotes, p99


def trust_table(summary: Summary, notes: Footnotes) -> Table:
    """A name and a sentence in each row."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _lines(summary, notes):
        table.add_row(name, Text(text))
    return table


def _lines(summary: Summary, notes: Footnotes) -> Iterator[tuple[str, str]]:
    yield "requests not ok", _statuses(summary)
    yield "hit rate, per request", _hits(summary)
    yield "hit rate, counters", _counters(summary)
    for stretch in summary.counters.stretches:
        yield f"  {clock_time(stretch.start_ns)} to {clock_time(stretch.end_ns)}", _stretch(stretch, summary)
    yield "counters and requests", summary.agreement.sentence()
    yield "planned prompt lengths", _planned(summary)
    yield "arrival stamps", _stamps(summary, notes)
    yield "harness late by", _late(summary, notes)
    yield "harness health", summary.health.sentence()
    if summary.certainty is None:
        yield "95 % intervals", f"{UNKNOWN} (not worked out for more than {count(MOST_REQUESTS)} requests)"
    else:
        yield from summary.certainty.lines()
    if summary.chunks_counted:
        yield "output tokens", f"one a chunk for {summary.chunks_counted} requests: their TPOT is per chunk"


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
        text = f"{UNKNOWN} (none of {hits.requests} requests reports both cached and prompt tokens)"
    else:
        tokens = f"{count(hits.cached_tokens)} of {count(hits.prompt_tokens)} tokens"
        text = f"{percent(hits.rate)}: {tokens}, reported by {hits.reporting} of {hits.requests} requests"
    if how := summary.advice.get("cached_tokens"):
        text += f"; {hits.ok_cached_unknown} of {hits.ok} successful requests report no cached tokens: {how}"
    return text


def _counters(summary: Summary) -> str:
    counters = summary.counters
    if counters.rate is None:
        return f"{UNKNOWN} ({counters.reason})"
    text = f"{_rate(counters)}, from {counters.since} to after"
    external = summary.server.external_cached_tokens
    return (
        f"{text}; {count(external.value)} tokens more from an external cache" if external and external.value else text
    )


def _stretch(stretch: Stretch, summary: Summary) -> str:
    """Of one replica, between two scrapes without a restart in between."""
    text = f"{UNKNOWN} ({stretch.reason})" if stretch.rate is None else _rate(stretch)
    return text if stretch.replica == summary.target else f"{stretch.replica}: {text}"


def _rate(counted: CounterRate | Stretch) -> str:
    tokens = f"{count(counted.cached_tokens)} of {count(counted.prompt_tokens)} tokens"
    return f"{percent(counted.rate)}: {tokens}"


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
        f"error p99 {p99(stamps.error_ms, notes, with_unit)}"
        if stamps.error_ms.n
        else f"error {UNKNOWN} (no kernel stamps)"
    )
    text = f"{clocks}; {error}; {percent(stamps.coalesced_share)} of the chunks coalesced"
    return f"{text}; the clock was set during {stamps.clock_steps} requests" if stamps.clock_steps else text


def _late(summary: Summary, notes: Footnotes) -> str:
    late = summary.stamps.late_ms
    return f"p99 {p99(late, notes, with_unit)}" if late.n else f"{UNKNOWN} (no request was sent)"
