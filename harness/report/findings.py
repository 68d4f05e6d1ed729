"""All that the plots of one side show, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.report import distances, hits, prefill, series, tails, turns, watch
from harness.report.flags import Flag, doubts, flags
from harness.report.side import Side
from harness.report.source import TimeBins
from harness.report.verdict import verdict


@dataclass(frozen=True, slots=True)
class OverTime:
    """On the axis of time, which begins with the first measured request."""

    end_s: float
    by_requests: Sequence[hits.Rate]
    by_counters: Sequence[hits.Rate]
    expected: Sequence[hits.Rate]
    ttft: Sequence[series.Line]
    sent: series.Line
    in_flight: Sequence[series.Line]
    gauges: dict[str, series.Line]
    token_rates: Sequence[series.Line]
    watch: watch.Watch


@dataclass(frozen=True, slots=True)
class Findings:
    side: Side
    number: int
    verdict: Sequence[str]
    flags: Sequence[Flag]
    over_time: OverTime | None
    """None: no measured request was sent."""
    prefill: prefill.Prefill
    ttft: Sequence[tails.Tail]
    tpot: Sequence[tails.Tail]
    turns: Sequence[turns.Turn]
    reuse: distances.Reuse | None

    def name(self, plot: str) -> str:
        """Of a plot of this side."""
        return f"{plot}-{self.number}" if self.side.name else plot


def find(side: Side, number: int, points: int) -> Findings:
    """`points`: how many requests at most the plot of TTFT shows."""
    source, bins = side.source, side.source.bins
    cost, ttft = prefill.prefill(source, points), tails.tails(source, "ttft_ms")
    granularity = side.summary.identity.get("granularity_tokens") or 1
    return Findings(
        side=side,
        number=number,
        verdict=verdict(side.summary, ttft, cost, doubts(side)),
        flags=tuple(flags(side)),
        over_time=None if bins is None else _over_time(side, bins),
        prefill=cost,
        ttft=ttft,
        tpot=tails.tails(source, "tpot_ms"),
        turns=turns.turns(source),
        reuse=distances.reuse(side.log, granularity),
    )


def _over_time(side: Side, bins: TimeBins) -> OverTime:
    source, metrics = side.source, side.of_target.target.metrics
    return OverTime(
        end_s=bins.count * bins.width_s,
        by_requests=hits.by_requests(source, bins),
        by_counters=hits.by_counters(source, bins, metrics),
        expected=hits.expected(side.summary),
        ttft=series.ttft(source, bins),
        sent=series.requests_a_second(source, bins),
        in_flight=series.in_flight(source, bins),
        gauges=series.gauges(source, bins, metrics),
        token_rates=series.token_rates(source, bins, metrics),
        watch=watch.watch(source, bins),
    )
