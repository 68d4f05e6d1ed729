"""Families of a metrics page, made by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from harness.sim.driver import Driver

M = TypeVar("M", bound=MetricWrapperBase)


class Families:
    """The families of one engine: names begin with `prefix`, and every series has `labels`.

    A series is there from the moment at which it is asked for; a second time gives the same one.
    """

    def __init__(self, registry: CollectorRegistry, prefix: str = "", labels: Mapping[str, str] | None = None) -> None:
        self.registry = registry
        self._prefix = prefix
        self._labels = labels or {}
        self._made: dict[str, MetricWrapperBase] = {}

    def counter(self, name: str, text: str, **labels: str) -> Counter:
        """`name` without _total."""
        return self._series(name, labels, lambda full, names: Counter(full, text, names, registry=self.registry))

    def gauge(self, name: str, text: str, **labels: str) -> Gauge:
        return self._series(name, labels, lambda full, names: Gauge(full, text, names, registry=self.registry))

    def histogram(self, name: str, text: str, buckets: Sequence[float], **labels: str) -> Histogram:
        """`buckets`: upper bounds, the last one, +Inf, left out."""

        def make(full: str, names: list[str]) -> Histogram:
            return Histogram(full, text, names, registry=self.registry, buckets=buckets)

        return self._series(name, labels, make)

    def _series(self, name: str, labels: Mapping[str, str], make: Callable[[str, list[str]], M]) -> M:
        values = {**self._labels, **labels}
        family = self._made.get(name)
        if family is None:
            family = self._made[name] = make(self._prefix + name, list(values))
        series: M = family.labels(**values) if values else family  # type: ignore[assignment]
        return series


def add_lag(registry: CollectorRegistry, driver: Driver) -> None:
    """The simulator's own gauges: how far it is behind its clock."""
    families = Families(registry)
    latest = families.gauge(
        "kvswarm_sim_lag_seconds", "How late the latest step's tokens were, by the machine's clock."
    )
    latest.set_function(lambda: driver.lag_s)
    greatest = families.gauge("kvswarm_sim_greatest_lag_seconds", "The latest that any step's tokens were so far.")
    greatest.set_function(lambda: driver.greatest_lag_s)
