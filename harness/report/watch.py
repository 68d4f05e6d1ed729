"""How the harness itself did over time."""

from __future__ import annotations

from dataclasses import dataclass

from harness.record.bottleneck import bottleneck
from harness.report.series import Line
from harness.report.source import Source, TimeBins


@dataclass(frozen=True, slots=True)
class Marked:
    """A stretch in which the harness was the bottleneck, in seconds since the first measured request."""

    start_s: float
    end_s: float
    why: str
    worker: int


@dataclass(frozen=True, slots=True)
class Watch:
    lag: tuple[Line, ...]
    """The worst of all workers in each bin: median and most that anything waited for the event loop, and the 99th
    percentile of `late_ms` of all requests; in ms."""
    cpu: tuple[Line, ...]
    """The largest share of a core of any worker."""
    marked: tuple[Marked, ...]


def watch(source: Source, bins: TimeBins) -> Watch:
    """While measured requests were sent; without lines if the run did not record it."""
    during = f"t_ns >= {bins.start_ns} AND t_ns < {bins.end_ns} AND worker >= 0"
    rows = source.ask(
        f"SELECT {bins.of('t_ns')} AS bin, max(loop_lag_p50_ms), max(loop_lag_max_ms), max(cpu_share) "
        f"FROM harness_health WHERE {during} GROUP BY bin ORDER BY bin"
    )
    late = source.ask(
        "SELECT sent, quantile_cont(late_ms, 0.99) FROM measured "
        "WHERE sent IS NOT NULL AND late_ms IS NOT NULL GROUP BY sent ORDER BY sent"
    )
    marked = source.ask(
        f"SELECT t_ns, worker, span_ms, loop_lag_p50_ms, loop_lag_max_ms, cpu_share FROM harness_health WHERE {during} "
        "ORDER BY t_ns, worker"
    )
    lag = [
        Line(name, tuple((bins.start_s(row[0]) + bins.width_s / 2, row[place]) for row in some))
        for name, place, some in (
            ("loop, median", 1, rows), ("loop, most", 2, rows), ("requests late, p99", 1, late)
        )
        if some
    ]  # fmt: skip
    cpu = [Line("busiest worker", tuple((bins.start_s(row[0]) + bins.width_s / 2, row[3]) for row in rows))]
    return Watch(tuple(lag), tuple(cpu) if rows else (), tuple(_marked(bins, marked)))


def _marked(bins: TimeBins, rows: list[tuple[int, int, float, float | None, float | None, float]]) -> list[Marked]:
    found = []
    for t_ns, worker, span_ms, p50_ms, max_ms, cpu_share in rows:
        if (why := bottleneck(span_ms, p50_ms, max_ms, cpu_share)) is not None:
            start_s = bins.seconds(t_ns)
            found.append(Marked(start_s, start_s + span_ms / 1e3, why, worker))
    return found
