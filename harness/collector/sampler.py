"""Scrapes a target's metrics page through a run, and hands the samples over as rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from harness.collector.metrics_page import Sample, sums
from harness.collector.scrape import Scrape, scrape
from harness.engines.control import open_session
from harness.engines.target import Target

Moment = Literal["before", "warmup_end", "periodic", "after"]
Row = dict[str, Any]
"""t_ns, moment, target, replica, name, family, type, labels, value, reset, error: see the `server_metrics` table."""

SETTLE_EVERY_S = 0.25

_SeriesKey = tuple[str, tuple[tuple[str, str], ...]]


class Collector:
    """The metrics of one target: on demand at the borders of a run, and every `every_s` seconds in between.

    Needs gevent's patched sockets (as Locust makes them), else a slow page holds up the whole process.
    A page is never read twice at once: some engines (llama.cpp) reset gauges at each scrape.
    """

    def __init__(self, target: Target, sink: Callable[[list[Row]], None], every_s: float = 1.0) -> None:
        """`sink` gets the rows of one scrape at a time. Raises TargetError if the API key or `ca_file` is not there."""
        self._url = target.metrics_url
        self._session = open_session(target, self._url or target.url)
        self._labels = {"target": target.url, "replica": urlsplit(self._url or "").netloc}
        self._sink = sink
        self._every_s = every_s
        self._turn = BoundedSemaphore(1)
        self._stopping = Event()
        self._greenlet: gevent.Greenlet | None = None
        self._is_absent = self._url is None
        self._last_values: dict[_SeriesKey, float] = {}
        self.reason: str | None = "the target has metrics_url: none" if self._url is None else None
        """Why the last scrape brought no samples; None if it did, or before the first one."""
        self.missed_ticks = 0
        """Periodic scrapes that were left out because the one before took too long."""

    @property
    def available(self) -> bool:
        """Whether the last scrape brought samples."""
        return self.reason is None

    def start(self) -> None:
        """Begin the periodic scrapes, unless the server said that it has no metrics page."""
        if not self._is_absent and self._greenlet is None:
            self._stopping.clear()
            self._greenlet = gevent.spawn(self._scrape_periodically)

    def stop(self) -> None:
        """End the periodic scrapes, after the one under way. Raises what `sink` raised during one of them."""
        self._stopping.set()
        if self._greenlet is not None:
            greenlet, self._greenlet = self._greenlet, None
            greenlet.get()

    def scrape_now(self, moment: Moment) -> None:
        """One scrape, after the one that may be under way."""
        if self._url is not None:
            with self._turn:
                self._keep(self._scrape(self._url), moment)

    def settle(
        self,
        moment: Moment,
        is_idle: Callable[[Mapping[str, float]], bool | None],
        timeout_s: float = 10.0,
    ) -> bool:
        """Scrape until the engine is idle and its counters stand still; the last of these scrapes is that of `moment`.

        Engines publish counts some time after the work, so one scrape after the last answer may miss some of it.
        `is_idle` is given name -> sum over labels; an engine that does not tell (None) settles by its counters alone.
        Returns whether it did settle within `timeout_s`.
        """
        if self._url is None:
            return False
        deadline = time.monotonic() + timeout_s
        before: dict[_SeriesKey, float] | None = None
        while True:
            with self._turn:
                now = self._scrape(self._url)
                quiet = now.error is None and is_idle(sums(now.samples)) is not False
                counts = {_key(sample): sample.value for sample in now.samples if sample.counts_work}
                settled = quiet and counts == before
                last = settled or now.is_absent or time.monotonic() >= deadline
                self._keep(now, moment if last else "periodic")
            if last:
                return settled
            before = counts if quiet else None
            gevent.sleep(SETTLE_EVERY_S)

    def _scrape_periodically(self) -> None:
        began_s, tick = time.monotonic(), 0
        while not self._stopping.wait(max(0.0, began_s + tick * self._every_s - time.monotonic())):
            self.scrape_now("periodic")
            tick, missed = next_tick(tick, time.monotonic() - began_s, self._every_s)
            self.missed_ticks += missed

    def _scrape(self, url: str) -> Scrape:
        result = scrape(self._session, url)
        self.reason, self._is_absent = result.error, result.is_absent
        return result

    def _keep(self, result: Scrape, moment: Moment) -> None:
        common = {"t_ns": result.t_ns, "moment": moment, **self._labels}
        up = _gauge("up", 1.0 if result.error is None else 0.0)
        duration = _gauge("scrape_duration_seconds", result.duration_ms / 1e3)
        rows = [{**common, **up, "error": result.error}, {**common, **duration, "error": None}]
        self._sink(rows + [{**common, **row} for row in self._rows(result)])

    def _rows(self, result: Scrape) -> Iterator[Row]:
        for sample in result.samples:
            yield {
                "name": sample.name,
                "family": sample.family,
                "type": sample.type,
                "labels": sample.labels,
                "value": sample.value,
                "reset": self._was_reset(sample),
                "error": None,
            }

    def _was_reset(self, sample: Sample) -> bool | None:
        """Whether a counter fell since the scrape before; None: it is no counter, or it is seen for the first time."""
        if not sample.is_cumulative:
            return None
        key = _key(sample)
        before = self._last_values.get(key)
        self._last_values[key] = sample.value
        return None if before is None else sample.value < before


def next_tick(tick: int, elapsed_s: float, every_s: float) -> tuple[int, int]:
    """(number of the next tick that is not over yet, how many were missed before it) on a schedule k * `every_s`."""
    upcoming = max(tick + 1, math.ceil(elapsed_s / every_s))
    return upcoming, upcoming - tick - 1


def _key(sample: Sample) -> _SeriesKey:
    return sample.name, tuple(sorted(sample.labels.items()))


def _gauge(name: str, value: float) -> Row:
    return {"name": name, "family": name, "type": "gauge", "labels": {}, "value": value, "reset": None}
