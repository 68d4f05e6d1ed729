"""What the engine's own metrics say of the measured phase, beside the token hit rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.counters import metric_of
from harness.analysis.pages import Replica, Unknown, series_of, some_pages
from harness.analysis.run import TargetRun
from harness.analysis.window import measured_window
from harness.record.manifest import MetricNames, Phase


@dataclass(frozen=True, slots=True)
class Counted:
    """What a counter grew by from the scrape warmup_end (else before) to after."""

    value: int | None
    reason: str | None
    """Why it is not known; None if it is."""


@dataclass(frozen=True, slots=True)
class Gauged:
    """A gauge over the scrapes of the measured phase, which may miss what happens between two of them."""

    peak: float | None
    mean: float | None
    """Each scrape counts the same."""
    scrapes: int
    reason: str | None
    """Why it is not known; None if it is."""


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """Each None if the engine has no metric of that meaning (`harness.engines.base.Meaning`)."""

    generated_tokens: Counted | None
    running_requests: Gauged | None
    waiting_requests: Gauged | None
    """Both summed over replicas."""
    kv_usage: Gauged | None
    """Share of the KV capacity in use, 0 to 1, of the fullest replica."""
    preemptions: Counted | None
    evicted_tokens: Counted | None
    external_cached_tokens: Counted | None
    """From a cache outside the engine; not among the cached tokens of the hit rate."""


def of_server(run: TargetRun, pages: Sequence[Replica]) -> ServerFigures:
    """The counters over the same window as the hit rate, the gauges over the phase "measure"."""
    return ServerFigures(
        generated_tokens=_counted(run, pages, "generated_tokens"),
        running_requests=_gauged(run, pages, "running_requests", sum),
        waiting_requests=_gauged(run, pages, "waiting_requests", sum),
        kv_usage=_gauged(run, pages, "kv_usage", max),
        preemptions=_counted(run, pages, "preemptions"),
        evicted_tokens=_counted(run, pages, "evicted_tokens"),
        external_cached_tokens=_counted(run, pages, "external_cached_tokens"),
    )


def _counted(run: TargetRun, pages: Sequence[Replica], meaning: str) -> Counted | None:
    metric = metric_of(run.target.metrics, meaning)
    if metric is None:
        return None
    try:
        return Counted(measured_window(pages, run.target).growth(metric), None)
    except Unknown as unknown:
        return Counted(None, str(unknown))


Together = Callable[[Iterable[float]], float]
"""How several series, or several replicas, make one value: their sum or their maximum."""


def _gauged(run: TargetRun, pages: Sequence[Replica], meaning: str, together: Together) -> Gauged | None:
    metric = metric_of(run.target.metrics, meaning)
    if metric is None:
        return None
    try:
        some_pages(pages, run.target)
        values = _values(pages, metric, together, [phase for phase in run.phases if phase.phase == "measure"])
    except Unknown as unknown:
        return Gauged(None, None, 0, str(unknown))
    return Gauged(max(values), sum(values) / len(values), len(values), None)


def _values(pages: Sequence[Replica], metric: MetricNames, together: Together, phases: Sequence[Phase]) -> list[float]:
    """One for each scrape within the phases. Raises Unknown if there is none."""
    if not phases:
        raise Unknown("run.json does not say when the measured phase was")
    readings = sorted(
        (time_ns, number, value)
        for number, replica in enumerate(pages)
        for time_ns, value in scraped(replica, metric, together)
        if any(phase.start_ns <= time_ns <= phase.end_ns for phase in phases) and math.isfinite(value)
    )
    latest: dict[int, float] = {}
    values = []
    for _, number, value in readings:
        latest[number] = value
        # Replicas are scraped one after the other: each counts with its latest value once all of them have one.
        if len(latest) == len(pages):
            values.append(together(latest.values()))
    if not values:
        raise Unknown(f"no scrape of the measured phase has {' or '.join(metric.names)} ({metric.counts})")
    return values


def scraped(replica: Replica, metric: MetricNames, together: Together) -> Iterator[tuple[int, float]]:
    """(time in ns, value) of each scrape that tells, in the order of time."""
    for time_ns, page in replica.pages.items():
        series = next((found for name in metric.names if (found := series_of(page, metric, name))), None)
        if series is not None:
            yield time_ns, together(series.values())
        elif page and metric.absent_is_zero:
            yield time_ns, 0.0
