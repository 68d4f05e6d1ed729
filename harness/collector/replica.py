"""One replica of a target through a run: its scrapes as rows, and whether its server was restarted between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from harness.collector.metrics_page import Sample, SeriesKey
from harness.collector.scrape import Scrape

_START_TIME = "process_start_time_seconds"
"""On pages of Prometheus's own client libraries."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A server that was started again while it was watched."""

    replica: str | None
    after_ns: int
    """Of the last scrape of the process before."""
    before_ns: int
    """Of the first scrape of the new one."""

    def __str__(self) -> str:
        begin, end = (f"{datetime.fromtimestamp(t_ns / 1e9, UTC):%H:%M:%S}" for t_ns in (self.after_ns, self.before_ns))
        who = "the server" if self.replica is None else f"the server at {self.replica}"
        return f"{who} was restarted during the run (between {begin} and {end} UTC): its counters began again"


class Replica:
    """Turns scrapes, given in the order of time, into rows."""

    def __init__(self, target: str, name: str | None) -> None:
        self.name = name
        self.last: Scrape | None = None
        """The scrape that was turned into rows last."""
        self.restarts: list[Restart] = []
        self._names = {"target": target, "replica": name}
        self._last_read_ns = 0
        self._counts: dict[SeriesKey, float] = {}
        """Cumulative series, whenever they were seen last."""
        self._start_marks: dict[SeriesKey | str, float | str] = {}
        self._began_again: set[SeriesKey] = set()
        """Series that were not seen since the restart."""

    def rows(self, scrape: Scrape, moment: str) -> list[dict[str, Any]]:
        """The sample `up`, the sample `scrape_duration_seconds`, then those of the page."""
        common = {"t_ns": scrape.t_ns, "moment": moment, **self._names}
        up = _gauge("up", 1.0 if scrape.error is None else 0.0)
        duration = _gauge("scrape_duration_seconds", scrape.duration_ms / 1e3)
        rows = [{**common, **up, "error": scrape.error}, {**common, **duration, "error": None}]
        self.last = scrape
        if scrape.error is None:
            rows += ({**common, **row} for row in self._page(scrape))
            self._last_read_ns = scrape.t_ns
        return rows

    def _page(self, scrape: Scrape) -> Iterator[dict[str, Any]]:
        counts = {sample.key: sample.value for sample in scrape.samples if sample.is_cumulative}
        if self._is_new_process(scrape, counts):
            self.restarts.append(Restart(self.name, self._last_read_ns, scrape.t_ns))
            # Every counter, also one that has grown past its old value since: no delta across this scrape is true.
            self._began_again |= set(self._counts) | set(counts)
            self._counts.clear()
        known = set(self._counts)
        self._counts |= counts
        for sample in scrape.samples:
            yield {
                "name": sample.name,
                "family": sample.family,
                "type": sample.type,
                "labels": sample.labels,
                "value": sample.value,
                "reset": self._reset(sample, known) if sample.is_cumulative else None,
                "error": None,
            }
        self._began_again -= set(counts)

    def _reset(self, sample: Sample, known: set[SeriesKey]) -> bool | None:
        if sample.key in self._began_again:
            return True
        return False if sample.key in known else None

    def _is_new_process(self, scrape: Scrape, counts: dict[SeriesKey, float]) -> bool:
        marks: dict[SeriesKey | str, float | str] = {
            sample.key: sample.value for sample in scrape.samples if sample.name == _START_TIME
        }
        if scrape.start_mark is not None:
            marks["header"] = scrape.start_mark
        moved = any(self._start_marks.get(key, mark) != mark for key, mark in marks.items())
        self._start_marks |= marks
        return moved or any(count < self._counts.get(key, count) for key, count in counts.items())


def _gauge(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "family": name, "type": "gauge", "labels": {}, "value": value, "reset": None}
