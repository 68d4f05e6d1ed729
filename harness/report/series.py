"""What client and server saw on one axis of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.analysis.counters import metric_of
from harness.analysis.grouped import quantiles_of
from harness.record.manifest import MetricNames
from harness.report.hits import grown, scraped
from harness.report.pieces import TimeBins
from harness.report.source import Source

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Line:
    """Values over time; a value belongs to the whole bin, or to a scrape."""

    name: str
    points: tuple[tuple[float, float | None], ...]
    """(seconds since the first measured request, value); None: nothing is known."""

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points if value is not None]


def ttft(source: Source, bins: TimeBins) -> list[Line]:
    """p50 and p90 of the requests sent in each bin, in ms."""
    times = quantiles_of(source.timed.sent, source.timed.ttft_ms, (0.5, 0.9))
    return [
        Line(
            name,
            tuple((bins.middle_s(one), times[one][1][place] if one in times else None) for one in range(bins.count)),
        )
        for place, name in enumerate(("p50", "p90"))
        if times
    ]


def requests_a_second(source: Source, bins: TimeBins) -> Line:
    """Measured requests sent."""
    return Line("sent", _binned(bins, source.by_bin.requests / bins.width_s))


def in_flight(source: Source, bins: TimeBins) -> list[Line]:
    """Measured requests, and sessions between their first request and the end of their last, at the end of each bin."""
    lines = []
    for name, begun, done in (
        ("requests", source.by_bin.requests, source.over),
        ("sessions", source.sessions_begun, source.sessions_over),
    ):
        points = zip(range(bins.count), np.cumsum(begun - done), strict=True)
        lines.append(Line(name, tuple((bins.start_s(number + 1), float(value)) for number, value in points)))
    return lines


def gauges(source: Source, bins: TimeBins, metrics: list[MetricNames]) -> dict[str, Line]:
    """Meaning -> each bin's latest value of running_requests and waiting_requests (summed over replicas), and kv_usage
    (of the fullest); those that the engine has."""
    lines = {}
    for meaning, name in (("running_requests", "running"), ("waiting_requests", "waiting"), ("kv_usage", "KV in use")):
        metric = metric_of(metrics, meaning)
        series = [] if metric is None else scraped(source, metric)
        if series:
            of_replicas = np.vstack([_latest(bins, *one) for one in series])
            together = np.max(of_replicas, axis=0) if meaning == "kv_usage" else np.sum(of_replicas, axis=0)
            lines[meaning] = Line(name, _binned(bins, together))
    return lines


def token_rates(source: Source, bins: TimeBins, metrics: list[MetricNames]) -> list[Line]:
    """Tokens a second by the server's counters: prefill is what was computed of prompts, decode what was generated."""
    computed = grown(source, bins, metric_of(metrics, "computed_prompt_tokens"))
    if computed is None:
        prompt = grown(source, bins, metric_of(metrics, "prompt_tokens"))
        cached = grown(source, bins, metric_of(metrics, "cached_prompt_tokens"))
        computed = None if prompt is None or cached is None else prompt - cached
    generated = grown(source, bins, metric_of(metrics, "generated_tokens"))
    return [
        Line(name, _binned(bins, np.maximum(tokens, 0.0) / bins.width_s))
        for name, tokens in (("prefill", computed), ("decode", generated))
        if tokens is not None and not np.isnan(tokens).all()
    ]


def _latest(bins: TimeBins, times: npt.NDArray[np.int64], values: Floats) -> Floats:
    """The last value in each bin, nan where there is none."""
    found = np.full(bins.count, np.nan)
    numbers = (times - bins.start_ns) // bins.width_ns
    for number, value in zip(numbers.tolist(), values.tolist(), strict=True):
        if 0 <= number < bins.count:
            found[number] = value
    return found


def _binned(bins: TimeBins, values: Floats) -> tuple[tuple[float, float | None], ...]:
    return tuple(
        (bins.middle_s(number), None if np.isnan(value) else float(value)) for number, value in enumerate(values)
    )
