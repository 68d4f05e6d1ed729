"""Client, server and harness over time."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.tables import Footnotes
from harness.analysis.target_tables import server_table
from harness.analysis.throughput_table import throughput_table
from harness.analysis.trust import trust_table
from harness.report.findings import Findings
from harness.report.markup import folded, rich_table, term
from harness.report.palette import BAD, EXPECTED, HIT, MISS, OTHER, TEXT, TIME
from harness.report.plot import DASHED, DOTTED, SOLID, Plot
from harness.report.plots.series import line_plot
from harness.report.section import Columns, Section, each, headings
from harness.report.side import Reported


def series(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> Section:
    lead = (
        f"What the client saw, and below it what the server's own metrics say, on one axis of time. Red is a time in "
        f"which {term('bottleneck', 'the harness was the bottleneck')}."
    )
    after = []
    if (table := throughput_table(reported.tables, notes)) is not None:
        after.append(folded("Throughput", rich_table(table)))
    if (table := server_table(reported.tables, notes)) is not None:
        after.append(folded("The server's own figures", rich_table(table)))
    return Section("series", "Client and server over time", lead, each(found, _time_plots), headings(found), after)


def _time_plots(one: Findings) -> list[Plot]:
    times = one.over_time
    if times is None:
        return []
    engine = one.side.summary.identity.get("engine", "the engine")
    looks = {
        "p50": (TIME, SOLID), "p90": (TIME, DASHED), "sent": (TEXT, SOLID), "requests": (TEXT, SOLID),
        "sessions": (OTHER, DASHED), "running": (TEXT, SOLID), "waiting": (BAD, DASHED), "KV in use": (EXPECTED, SOLID),
        "prefill": (MISS, SOLID), "decode": (OTHER, DASHED),
    }  # fmt: skip
    queue = [times.gauges[name] for name in ("running_requests", "waiting_requests") if name in times.gauges]
    use = [times.gauges["kv_usage"]] if "kv_usage" in times.gauges else []
    marked, end_s = times.watch.marked, times.end_s
    return [
        line_plot(one.name("time-ttft"), "Client: TTFT", "ms", end_s, times.ttft, looks, marked,
                  lacking="No TTFT over time: no successful request has one."),
        line_plot(one.name("time-flight"), "Client: in flight", "number", end_s, times.in_flight, looks, marked,
                  lacking="Nothing was in flight.", height=90),
        line_plot(one.name("time-sent"), "Client: requests sent", "a second", end_s, [times.sent], looks, marked,
                  lacking="No request was sent.", height=80),
        line_plot(one.name("time-queue"), "Server: requests", "number", end_s, queue, looks, marked,
                  lacking=f"No queue over time: no scrape tells what {engine} had running.", height=90),
        line_plot(one.name("time-kv"), "Server: KV capacity in use", "%", end_s, use, looks, marked, form=".0%", most=1,
                  lacking=f"No KV use over time: {engine} has no such metric, or no scrape has it.", height=80),
        line_plot(one.name("time-tokens"), "Server: tokens", "a second", end_s, times.token_rates, looks, marked,
                  lacking=f"No token rates over time: no two scrapes tell what {engine} counts.", form="~s", last=True),
    ]  # fmt: skip


def health(found: Sequence[Findings], notes: Footnotes) -> Section:
    looks = {
        "loop, median": (OTHER, SOLID), "loop, most": (TIME, SOLID), "requests late, p99": (MISS, DASHED),
        "busiest worker": (HIT, DOTTED),
    }  # fmt: skip

    def plots(one: Findings) -> list[Plot]:
        if (times := one.over_time) is None:
            return []
        watched = times.watch
        lacking = "Harness health was not recorded."
        return [
            line_plot(one.name("health-lag"), "How late the harness was", "ms, log scale", times.end_s, watched.lag,
                      looks, watched.marked, lacking=lacking, log=True, last=True),
            line_plot(one.name("health-cpu"), "CPU of the busiest worker", "% of a core", times.end_s, watched.cpu,
                      looks | {"busiest worker": (HIT, SOLID)}, watched.marked, lacking=lacking, form=".0%", most=1,
                      height=120, last=True),
        ]  # fmt: skip

    columns: Columns = each(found, plots)
    if len(found) == 1:
        columns = [[one] for one in columns[0]]
    after = []
    for one in found:
        title = f"{one.side.prefix}how far to trust it"
        after.append(
            folded(f"{title[:1].upper()}{title[1:]}", rich_table(trust_table(one.side.summary, notes)), len(found) > 2)
        )
    lead = (
        f"Whether the {term('bottleneck', 'harness itself')} kept up: what waited for its event loop, how "
        f"{term('late', 'late')} it sent, and its CPU."
    )
    return Section("health", "Health of the harness", lead, columns, headings(found), after)
