"""What hits buy: the cost of prefill, TTFT and TPOT of hits against misses, and by turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.analysis.numbers import count, milliseconds, percent, with_unit
from harness.analysis.tables import Footnotes, hit_table, kinds, latency_table
from harness.report.findings import Findings
from harness.report.markup import folded, rich_table, term
from harness.report.plot import Plot
from harness.report.plots.prefill import prefill_plot
from harness.report.plots.tails import ecdf_plot, tail_plot
from harness.report.plots.turns import turn_plots
from harness.report.section import Columns, Section, each, headings, sentences, side_table
from harness.report.side import Reported
from harness.report.verdict import duration


def prefill(found: Sequence[Findings]) -> Section:
    points = [point for one in found for point in one.prefill.points]
    most_tokens = max((point.uncached_tokens for point in points), default=1)
    most_ms = max((point.ttft_ms for point in points), default=1.0)
    columns = each(found, lambda one: [prefill_plot(one.name("prefill"), one.prefill, most_tokens, most_ms)])
    rows = []
    for one in found:
        fit = one.prefill.fit
        name = one.side.name
        if fit is None:
            rows.append((name, *["-"] * 5))
            continue
        rows.append(
            (name, with_unit(fit.ms_per_1000), f"{milliseconds(fit.low)} to {milliseconds(fit.high)}",
             with_unit(fit.base_ms), duration(fit.saved_s),
             f"{duration(fit.saved_low_s)} to {duration(fit.saved_high_s)}")
        )  # fmt: skip
    titles = ("target", "prefill cost", "95 % interval", "TTFT at 0 tokens", "saved prefill", "95 % interval")
    lead = (
        f"Each point is a successful request: its {term('ttft', 'TTFT')} over the prompt tokens that "
        f"{term('uncached', 'were computed')}. The dashed line is the fit; its slope is the "
        f"{term('prefill-cost', 'prefill cost')} of 1,000 tokens under this load. "
        f"{term('saved', 'Saved prefill')} is an estimate."
    )
    return Section(
        "prefill", "What prefill costs", lead, columns, headings(found),
        [folded("The fit", side_table(found, titles, rows)), sentences(found, _sampled)],
    )  # fmt: skip


def _sampled(one: Findings) -> Iterator[str]:
    cost = one.prefill
    if (cost.reason and cost.points) or cost.reason:
        yield f"No prefill cost: {cost.reason}."
    if len(cost.points) < cost.requests:
        yield f"Shown and fitted: {len(cost.points):,} of {cost.requests:,} requests, drawn at random by their ids."


def tails(reported: Reported, found: Sequence[Findings], notes: Footnotes) -> Section:
    ranges = {
        time: _range([], [value for one in found for tail in getattr(one, time) for _, value in tail.curve])
        for time in ("ttft", "tpot")
    }

    def plots(one: Findings) -> list[Plot]:
        return [
            ecdf_plot(one.name("ttft"), "ttft_ms", one.ttft, ranges["ttft"]),
            tail_plot(one.name("ttft-tail"), "ttft_ms", one.ttft, ranges["ttft"]),
            ecdf_plot(one.name("tpot"), "tpot_ms", one.tpot, ranges["tpot"]),
            tail_plot(one.name("tpot-tail"), "tpot_ms", one.tpot, ranges["tpot"]),
        ]

    rows = [
        (one.side.name, name, tail.which, count(tail.n),
         *(milliseconds(value) for value in (tail.p50_ms, tail.p90_ms, tail.p99_ms, tail.longest_ms)))
        for one in found
        for name, tails in (("TTFT", one.ttft), ("TPOT", one.tpot))
        for tail in tails
    ]  # fmt: skip
    titles = ("target", "ms", "requests that", "n", "p50", "p90", "p99", "longest")
    after = [folded("Hits and misses, in ms", side_table(found, titles, rows, texts=3))]
    for kind, scenario in kinds(reported.tables):
        latency = rich_table(latency_table(reported.tables, kind, scenario, notes))
        after.append(folded(f"{kind} (scenario {scenario}): latency in ms", latency))
        states = rich_table(hit_table(reported.tables, kind, scenario, notes))
        after.append(folded(f"{kind} (scenario {scenario}): token hit rate, as reported per request", states))
    lead = (
        f"{term('ttft', 'TTFT')} and {term('tpot', 'TPOT')} of successful requests, "
        f"{term('hit', 'hits against misses')}: how many took at most as long, and how many took longer, on a log "
        "scale, where the tail shows."
    )
    pairs = each(found, plots)
    if len(found) == 1:
        return Section("latency", "Hits against misses", lead, [pairs[0][:2], pairs[0][2:]], [], after)
    return Section("latency", "Hits against misses", lead, pairs, headings(found), after)


def _range(tails: Sequence[Sequence[object]], values: list[float]) -> tuple[float, float]:
    """Of a log axis over all values above 0."""
    known = [value for value in values if value > 0]
    if not known:
        return 1.0, 10.0
    low, high = min(known), max(known)
    return (low / 1.1, high * 1.1) if high > 1.5 * low else (low / 2, high * 2)


def turns(found: Sequence[Findings]) -> Section:
    most = max((turn.ttft_p90_ms or 0 for one in found for turn in one.turns), default=1.0) or 1.0
    columns: Columns = each(
        found, lambda one: turn_plots(one.name("turn-ttft"), one.name("turn-hits"), one.turns, most)
    )
    rows = [
        (one.side.name, turn.name, count(turn.timed), milliseconds(turn.ttft_p50_ms),
         milliseconds(turn.ttft_p90_ms), percent(turn.rate))
        for one in found
        for turn in one.turns
    ]  # fmt: skip
    titles = ("target", "turn", "n", "TTFT p50", "TTFT p90", "hit rate")
    lead = f"The first {term('turn', 'turn')} of a session is cold; what later ones find is their own history."
    if len(found) == 1:
        columns = [[one] for one in columns[0]]
    return Section(
        "turns", "By turn", lead, columns, headings(found), [folded("By turn", side_table(found, titles, rows))]
    )
