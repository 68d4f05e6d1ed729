"""The token hit rate over time: by requests, by counters, and as the cache's rules lead to expect."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from harness.analysis.counters import metric_of
from harness.analysis.summary import Summary
from harness.record.manifest import MetricNames
from harness.report.source import Source, TimeBins, literal


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
    both = "FILTER (cached_tokens IS NOT NULL AND prompt_tokens IS NOT NULL)"
    rows = source.ask(
        f"SELECT sent, (sum(cached_tokens) {both})::BIGINT, (sum(prompt_tokens) {both})::BIGINT "
        "FROM measured WHERE sent IS NOT NULL GROUP BY sent ORDER BY sent"
    )
    return [_rate(bins, number, cached, prompt) for number, cached, prompt in rows]


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


def expected(summary: Summary) -> list[Rate]:
    """As in the waterfall, by tenths of the time."""
    steps = {part.key: part.steps for part in summary.waterfall.by_window}
    return [
        Rate(
            window.start_s,
            window.end_s,
            steps[window.key].expected / steps[window.key].prompt_tokens,
            steps[window.key].prompt_tokens,
        )
        for window in summary.working_set
        if window.key in steps and steps[window.key].prompt_tokens
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
    labels = "".join(f" AND labels[{literal(name)}] = {literal(value)}" for name, value in metric.labels.items())
    for name in metric.names:
        rows = source.ask(
            "SELECT coalesce(replica, ''), t_ns, sum(value) FROM scraped "
            f"WHERE name = {literal(name)} AND isfinite(value){labels} GROUP BY ALL ORDER BY 1, 2"
        )
        if rows:
            borders = [0, *(n for n, (one, two) in enumerate(pairwise(rows), start=1) if one[0] != two[0]), len(rows)]
            return [
                (
                    np.array([t_ns for _, t_ns, _ in rows[start:end]], dtype=np.int64),
                    np.array([value for *_, value in rows[start:end]], dtype=np.float64),
                )
                for start, end in pairwise(borders)
            ]
    return []


def _rate(bins: TimeBins, number: int, cached: float | None, prompt: float | None) -> Rate:
    rate = None if cached is None or not prompt else float(cached) / float(prompt)
    return Rate(bins.start_s(number), bins.start_s(number + 1), rate, int(prompt or 0))
