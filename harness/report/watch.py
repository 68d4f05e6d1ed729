"""How the harness itself did over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.analysis.grouped import Floats, Groups, quantiles_of
from harness.analysis.health import marked_seconds
from harness.report.pieces import TimeBins
from harness.report.series import Line
from harness.report.source import Source

_LINES = (
    ("loop, median", "loop_lag_p50_ms"), ("loop, most", "loop_lag_max_ms"), ("busiest worker", "cpu_share"),
)  # fmt: skip


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
    health = source.harness_health
    during = health[(health["worker"] >= 0) & (health["t_ns"] >= bins.start_ns) & (health["t_ns"] < bins.end_ns)]
    numbers = bins.of(during["t_ns"].to_numpy(dtype=np.int64))
    lines = [
        _line(bins, name, _most(numbers, during[column].to_numpy(dtype=np.float64, na_value=np.nan)))
        for name, column in _LINES
    ]
    late = quantiles_of(source.late_sent, source.late_ms, (0.99,))
    lines.insert(2, _line(bins, "requests late, p99", {number: at[0] for number, (_, at) in late.items()}))
    marked = (
        Marked(bins.seconds(mark.start_ns), bins.seconds(mark.end_ns), mark.why, mark.worker)
        for mark in marked_seconds(during)
    )
    *lag, cpu = lines
    return Watch(tuple(line for line in lag if line.points), (cpu,) if cpu.points else (), tuple(marked))


def _most(numbers: Groups, values: Floats) -> dict[int, float | None]:
    """Bin -> the largest of its values, None where none is known."""
    most = np.full(int(numbers.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(most, numbers, np.nan_to_num(values, nan=-np.inf))
    return {number: float(most[number]) if most[number] > -np.inf else None for number in np.unique(numbers).tolist()}


def _line(bins: TimeBins, name: str, values: Mapping[int, float | None]) -> Line:
    """`values`: by the number of the bin."""
    return Line(name, tuple((bins.middle_s(number), value) for number, value in values.items()))
