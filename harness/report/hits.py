"""The token hit rate over time: by requests, by counters, and as the cache's rules lead to expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.analysis.counters import metric_of
from harness.analysis.pages import Labels, series_of
from harness.analysis.summary import Summary
from harness.record.manifest import MetricNames
from harness.report.pieces import TimeBins
from harness.report.source import Source


@dataclass(frozen=True, slots=True)
class Rate:
    """Of one bin of time. Seconds since the first measured request."""

    start_s: float
    end_s: float
    rate: float | None
    """Cached / prompt tokens; None: nothing tells."""
    prompt_tokens: int


def by_requests(source: Source, bins: TimeBins) -> list[Rate]:
    """Of the measured requests that report both counts, by when they were sent."""
    return [
        _rate(bins, number, int(cached) if reporting else None, int(prompt) if reporting else None)
        for number, (n, reporting, prompt, cached) in enumerate(
            zip(
                source.by_bin.requests,
                source.by_bin.reporting,
                source.by_bin.prompt_tokens,
                source.by_bin.cached_tokens,
                strict=True,
            )
        )
        if n
    ]


def by_counters(source: Source, bins: TimeBins, metrics: list[MetricNames]) -> list[Rate]:
    """What the counters grew by in each bin; between two scrapes they are taken to grow evenly.

    Where the engine counts only those prompt tokens that it computed, the rate is cached / (cached + computed).
    """
    cached = grown(source, bins, metric_of(metrics, "cached_prompt_tokens"))
    prompt = grown(source, bins, metric_of(metrics, "prompt_tokens"))
    if prompt is None and cached is not None:
        computed = grown(source, bins, metric_of(metrics, "computed_prompt_tokens"))
        prompt = None if computed is None else computed + cached
    if cached is None or prompt is None:
        return []
    known = [number for number in range(bins.count) if not np.isnan(cached[number] + prompt[number])]
    return [_rate(bins, number, cached[number], prompt[number]) for number in known if prompt[number] >= 1]


def by_tenths(summary: Summary, which: Literal["expected", "measured"]) -> list[Rate]:
    """As in the waterfall, by tenths of the time: both of the same requests, in the same stretches."""
    steps = {part.key: part.steps for part in summary.waterfall.by_window}
    return [
        Rate(window.start_s, window.end_s, tokens / steps[window.key].prompt_tokens, steps[window.key].prompt_tokens)
        for window in summary.working_set
        if window.key in steps and steps[window.key].prompt_tokens
        if (tokens := getattr(steps[window.key], which)) is not None
    ]


def grown(source: Source, bins: TimeBins, metric: MetricNames | None) -> npt.NDArray[np.float64] | None:
    """Shape (bins,): what a counter grew by in each, over all its series and replicas; nan: no scrape tells.

    None: there is no such counter. What was counted between the last scrape before a restart and the restart is lost.
    """
    series = [] if metric is None else scraped(source, metric)
    if not series:
        return None
    edges = bins.start_ns + bins.width_ns * np.arange(bins.count + 1)
    grown = np.zeros(bins.count)
    for times, values in series:
        steps = np.diff(values, prepend=values[0])
        total = np.cumsum(np.maximum(steps, 0.0))
        at = np.interp(edges, times, total)
        at[(edges < times[0] - bins.width_ns) | (edges > times[-1] + bins.width_ns)] = np.nan
        grown += np.diff(at)
    return grown


def scraped(source: Source, metric: MetricNames) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """For each replica (times in ns, sums over the metric's series), under the first of its names that is there."""
    for name in metric.names:
        found = []
        for replica in source.pages:
            series = {time_ns: _finite(series_of(page, metric, name)) for time_ns, page in replica.pages.items()}
            known = {time_ns: sum(values) for time_ns, values in sorted(series.items()) if values}
            if known:
                found.append((np.array([*known], dtype=np.int64), np.array([*known.values()], dtype=np.float64)))
        if found:
            return found
    return []


def _finite(series: Mapping[Labels, float]) -> list[float]:
    return [value for value in series.values() if math.isfinite(value)]


def _rate(bins: TimeBins, number: int, cached: float | None, prompt: float | None) -> Rate:
    rate = None if cached is None or not prompt else float(cached) / float(prompt)
    return Rate(bins.start_s(number), bins.start_s(number + 1), rate, int(prompt or 0))
