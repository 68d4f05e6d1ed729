"""Which collector suits a target."""

from __future__ import annotations

from harness.collector.base import Collector, Sink
from harness.collector.pages import PageCollector
from harness.collector.prometheus import PrometheusCollector
from harness.engines.target import Target


def open_collector(target: Target, sink: Sink, every_s: float = 1.0) -> Collector:
    """Of the target's Prometheus if it names one, else of its own pages, scraped every `every_s` seconds.

    Raises TargetError if an API key or `ca_file` is not there.
    """
    if target.prometheus is not None:
        return PrometheusCollector(target, target.prometheus, sink)
    return PageCollector(target, sink, every_s)
