"""What the engines say of themselves: their metrics, read through the run from their pages or from a Prometheus."""

from harness.collector.base import Collector, Moment, Row, Sink
from harness.collector.meaning import value
from harness.collector.metrics_page import Sample
from harness.collector.opening import open_collector
from harness.collector.replica import Restart

__all__ = ["Collector", "Moment", "Restart", "Row", "Sample", "Sink", "open_collector", "value"]
