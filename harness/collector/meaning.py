"""What a scrape says of one of the things that an engine's metrics tell."""

from __future__ import annotations

from collections.abc import Iterable

from harness.collector.metrics_page import Sample
from harness.engines.base import Metric


def value(metric: Metric, samples: Iterable[Sample]) -> float | None:
    """Sum over the series of the first of the metric's names that has any with its labels.

    Without such a series: 0 if the engine makes them at their first event (`absent_is_zero`), else None.
    No samples at all are a page that was not read, and always None.
    """
    found: dict[str, float] = {}
    was_read = False
    for sample in samples:
        was_read = True
        if sample.name in metric.names and metric.labels.items() <= sample.labels.items():
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    absent = 0.0 if metric.absent_is_zero and was_read else None
    return next((found[name] for name in metric.names if name in found), absent)
