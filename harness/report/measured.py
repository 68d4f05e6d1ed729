"""What the plots of one side show of its measured requests and of its server's metrics, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.pages import Replica
from harness.analysis.run import TargetRun
from harness.record.manifest import MetricNames
from harness.report import hits, prefill, series, tails, turns, watch
from harness.report.pieces import TimeBins
from harness.report.source import Source


@dataclass(frozen=True, slots=True)
class OverTime:
    """On the axis of time, which begins with the first measured request."""

    end_s: float
    by_requests: Sequence[hits.Rate]
    by_counters: Sequence[hits.Rate]
    ttft: Sequence[series.Line]
    sent: series.Line
    in_flight: Sequence[series.Line]
    gauges: dict[str, series.Line]
    token_rates: Sequence[series.Line]
    watch: watch.Watch


@dataclass(frozen=True, slots=True)
class Measured:
    over_time: OverTime | None
    """None: no measured request was sent."""
    prefill: prefill.Prefill
    ttft: Sequence[tails.Tail]
    tpot: Sequence[tails.Tail]
    turns: Sequence[turns.Turn]


def measured(run: TargetRun, pages: Sequence[Replica], points: int) -> Measured:
    """`points`: how many requests at most the plot of TTFT shows."""
    source = Source(run, pages)
    return Measured(
        over_time=None if source.bins is None else _over_time(source, source.bins, run.target.metrics),
        prefill=prefill.prefill(source, points),
        ttft=tails.tails(source, "ttft_ms"),
        tpot=tails.tails(source, "tpot_ms"),
        turns=turns.turns(source),
    )


def _over_time(source: Source, bins: TimeBins, metrics: list[MetricNames]) -> OverTime:
    return OverTime(
        end_s=bins.count * bins.width_s,
        by_requests=hits.by_requests(source, bins),
        by_counters=hits.by_counters(source, bins, metrics),
        ttft=series.ttft(source, bins),
        sent=series.requests_a_second(source, bins),
        in_flight=series.in_flight(source, bins),
        gauges=series.gauges(source, bins, metrics),
        token_rates=series.token_rates(source, bins, metrics),
        watch=watch.watch(source, bins),
    )
