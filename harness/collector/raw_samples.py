"""Raw samples out of Prometheus, put together again to the scrapes that they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from harness.collector.metrics_page import Sample
from harness.collector.prometheus_server import Labels, Series
from harness.collector.scrape import Scrape

ReplicaKey = tuple[tuple[str, str], ...]
"""The labels that Prometheus gives to a replica (job, instance, ...), sorted."""

_OF_PROMETHEUS = frozenset(
    {
        "up",
        "scrape_duration_seconds",
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
        "scrape_series_added",
        "scrape_timeout_seconds",
        "scrape_sample_limit",
        "scrape_body_size_bytes",
    }
)
"""Series that Prometheus adds to those of a page."""
_PARTS = {"_bucket": {"histogram"}, "_sum": {"histogram", "summary"}, "_count": {"histogram", "summary"}}
_AS_GAUGE = {"info", "stateset", "gaugehistogram"}
"""Types of OpenMetrics that are gauges on a page of the older format."""


def replica_key(labels: Labels) -> ReplicaKey:
    return tuple(sorted((name, text) for name, text in labels.items() if name != "__name__"))


def instance(key: ReplicaKey) -> str | None:
    return dict(key).get("instance")


def family_and_type(name: str, types: Mapping[str, str]) -> tuple[str, str] | None:
    """Of a sample, as a metrics page would declare them; None if `types` does not tell.

    Prometheus may have read a page of OpenMetrics, where the metric of a counter x_total is x.
    """
    if name in types:
        return name, "gauge" if types[name] in _AS_GAUGE else types[name]
    for suffix, kinds in _PARTS.items():
        base = name.removesuffix(suffix)
        if base != name and types.get(base) in kinds:
            return base, types[base]
    if types.get(name.removesuffix("_total")) == "counter":
        return name, "counter"
    if name.removesuffix("_created") in types or types.get(name.removesuffix("_info")) == "info":
        return name, "gauge"
    return None


def guessed(name: str, names: Iterable[str]) -> tuple[str, str]:
    """The same by the name alone; `names` are all that the replica has."""
    known = frozenset(names)
    for suffix in _PARTS:
        base = name.removesuffix(suffix)
        if base != name and f"{base}_bucket" in known:
            return base, "histogram"
    return name, "counter" if name.endswith("_total") else "unknown"


class ReplicaSamples:
    """What one answer of Prometheus holds of one replica.

    A sample belongs to the scrape of its time, and so to the sample `up` of that time: the results of rules, which
    have times of their own, are left out.
    """

    def __init__(self, labels: ReplicaKey) -> None:
        self._labels = dict(labels)
        self._what = instance(labels) or "the target"
        self._up: dict[int, float] = {}
        self._durations_ms: dict[int, float] = {}
        self._series: list[tuple[str, dict[str, str], dict[int, float]]] = []

    def add(self, series: Series) -> None:
        labels: Labels = series["metric"]
        name = labels.get("__name__", "")
        values = {round(float(at_s) * 1e3): float(text) for at_s, text in series["values"]}
        if name == "up":
            self._up = values
        elif name == "scrape_duration_seconds":
            self._durations_ms = {at_ms: value * 1e3 for at_ms, value in values.items()}
        elif name not in _OF_PROMETHEUS:
            self._series.append((name, self._on_page(labels), values))

    def _on_page(self, labels: Labels) -> dict[str, str]:
        """Without the replica's own, and with those that had to make way for them under their old names."""
        rest = {name: text for name, text in labels.items() if name != "__name__" and name not in self._labels}
        moved = {f"exported_{name}": name for name in self._labels}
        return {moved.get(name, name): text for name, text in rest.items()}

    @property
    def names(self) -> set[str]:
        return {name for name, _, _ in self._series}

    def scrapes(self, after_ms: int, families: Mapping[str, tuple[str, str]]) -> Iterator[Scrape]:
        """Those after `after_ms`, in the order of time; `families` maps a name to family and type."""
        for at_ms in sorted(at_ms for at_ms in self._up if at_ms > after_ms):
            duration_ms = self._durations_ms.get(at_ms, 0.0)
            if self._up[at_ms] != 1:
                yield Scrape(at_ms * 10**6, duration_ms, (), f"Prometheus could not scrape {self._what}")
                continue
            samples = tuple(
                Sample(name, *families[name], labels, values[at_ms])
                for name, labels, values in self._series
                if at_ms in values
            )
            yield Scrape(at_ms * 10**6, duration_ms, samples, None)


def by_replica(answer: Iterable[Series], pause: Callable[[], object]) -> dict[ReplicaKey, ReplicaSamples]:
    """`pause` is called now and then, so that a caller with an event loop can let others run."""
    answer = list(answer)
    replicas = [replica_key(series["metric"]) for series in answer if series["metric"].get("__name__") == "up"]
    found = {key: ReplicaSamples(key) for key in replicas}
    of_instance: dict[str | None, list[ReplicaKey]] = {}
    for key in found:
        of_instance.setdefault(instance(key), []).append(key)
    for number, series in enumerate(answer):
        labels: Labels = series["metric"]
        for key in of_instance.get(labels.get("instance"), ()):
            if labels.items() >= dict(key).items():
                found[key].add(series)
        if number % 100 == 99:
            pause()
    return found
