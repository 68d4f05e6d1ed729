"""The target's metrics out of a Prometheus server that scrapes it already."""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from harness.collector.base import IsIdle, Moment, Sink
from harness.collector.border import Border
from harness.collector.metrics_page import Sample
from harness.collector.prometheus_server import PrometheusError, PrometheusServer
from harness.collector.raw_samples import ReplicaKey, instance
from harness.collector.replica import Replica, Restart
from harness.collector.rest import Rest
from harness.collector.scrape import Scrape
from harness.collector.scrape_log import MARGIN_S, ScrapeLog
from harness.engines.target import Prometheus, Target

FETCH_EVERY_S = 5.0
POLL_EVERY_S = 0.25


class PrometheusCollector:
    """A `Collector` that leaves the target alone: it reads every scrape that Prometheus took of it.

    All times are Prometheus's, and it is asked for its own time, so that its clock need not agree with ours.
    """

    reason: str | None
    missed_ticks: int

    def __init__(self, target: Target, described: Prometheus, sink: Sink, fetch_every_s: float = FETCH_EVERY_S) -> None:
        """Raises TargetError if the token's variable is not set, or if the target's `ca_file` is not there."""
        self._url = described.url
        self._log = ScrapeLog(PrometheusServer(target, described))
        self._target = target.name
        self._sink = sink
        self._fetch_every_s = fetch_every_s
        self._turn = BoundedSemaphore(1)
        self._stopping = Event()
        self._greenlet: gevent.Greenlet | None = None
        self._replicas: dict[ReplicaKey, Replica] = {}
        self._current: tuple[ReplicaKey, ...] = ()
        """Those that Prometheus scraped at the last border."""
        self.reason = None
        self.missed_ticks = 0

    @property
    def samples(self) -> tuple[Sample, ...]:
        last = self._last()
        return tuple(sample for scrape in last for sample in scrape.samples) if self._errors() is None else ()

    @property
    def available(self) -> bool:
        return any(scrape.error is None for scrape in self._last())

    @property
    def restarts(self) -> list[Restart]:
        return [restart for replica in self._replicas.values() for restart in replica.restarts]

    @property
    def notes(self) -> list[str]:
        """Whether the clocks differ, by as much as a second or the scrape interval."""
        clock, most_ms = self._log.clock, 1e3 * min(1.0, self._log.interval_s)
        if clock is None or abs(clock.ahead_ms) - clock.error_ms < most_ms:
            return []
        way = "ahead of" if clock.ahead_ms > 0 else "behind"
        return [
            f"the clock of Prometheus at {self._url} is {abs(clock.ahead_ms) / 1e3:.1f} s {way} this machine's; "
            f"the times of {self._target} in server_metrics are Prometheus's"
        ]

    # --- between the borders -------------------------------------------------------------------

    def start(self) -> None:
        """As the protocol says; the scrapes are Prometheus's own, and are fetched every few seconds."""
        if self._greenlet is None:
            self._stopping.clear()
            self._greenlet = gevent.spawn(self._fetch_periodically)

    def stop(self) -> None:
        """As the protocol says; takes what Prometheus has scraped until now."""
        self._stopping.set()
        if self._greenlet is not None:
            greenlet, self._greenlet = self._greenlet, None
            greenlet.get()
            self._fetch()

    def _fetch_periodically(self) -> None:
        while not self._stopping.wait(self._fetch_every_s):
            self._fetch()

    def _fetch(self) -> None:
        with self._turn:
            try:
                for key, scrape in self._log.unread():
                    self._keep(key, scrape, "periodic")
                self.reason = self._errors()
            except PrometheusError as error:
                self.reason = str(error)

    # --- at a border ---------------------------------------------------------------------------

    def scrape_now(self, moment: Moment) -> None:
        """As the protocol says: waits for Prometheus's next scrape of every replica."""
        self._take(moment, lambda _, __: True, 0.0)

    def settle(self, moment: Moment, is_idle: IsIdle, timeout_s: float = 10.0) -> bool:
        """As the protocol says; two of Prometheus's scrapes at least are waited for."""
        rests: dict[ReplicaKey, Rest] = {}

        def is_reached(key: ReplicaKey, scrape: Scrape) -> bool:
            return rests.setdefault(key, Rest(is_idle)).is_reached(scrape)

        return self._take(moment, is_reached, timeout_s)

    def _take(self, moment: Moment, is_last: Callable[[ReplicaKey, Scrape], bool], slack_s: float) -> bool:
        """Whether each replica's scrape that `is_last` accepts has come, in `slack_s` and the time of two scrapes."""
        with self._turn:
            self._current = ()
            try:
                border = Border(moment, self._log.now_ms(), is_last)
                self._current = self._log.replicas()
            except PrometheusError as error:
                self.reason = str(error)
                for replica in self._replicas.values() or [Replica(self._target, None)]:
                    self._sink(replica.rows(self._failed(), moment))
                return False
            try:
                self.reason = self._wait(border, slack_s)
            except PrometheusError as error:
                self.reason = str(error)
            missing = border.missing(self._current)
            for key in missing:
                self._keep(key, border.held(key) or self._failed(), moment)
            return not missing

    def _wait(self, border: Border, slack_s: float) -> str | None:
        """Keep scrapes until none of the border's is missing. Returns what is wrong with them."""
        bound_s = slack_s + 2 * self._log.interval_s + MARGIN_S
        deadline = time.monotonic() + bound_s
        while True:
            if self._log.has_unread():
                for key, scrape in self._log.unread():
                    for kept, moment in border.take(key, scrape):
                        self._keep(key, kept, moment)
            missing = border.missing(self._current)
            if not missing:
                return self._errors()
            if time.monotonic() >= deadline:
                return self._overdue(border, missing, bound_s)
            gevent.sleep(POLL_EVERY_S)

    def _overdue(self, border: Border, missing: list[ReplicaKey], bound_s: float) -> str:
        names = ", ".join(instance(key) or "the target" for key in missing)
        held = [scrape for key in missing if (scrape := border.held(key)) is not None]
        if errors := {scrape.error for scrape in held if scrape.error is not None}:
            return "; ".join(sorted(errors))
        problem = f"{names} was not idle with its counters at rest" if held else f"no scrape of {names} came"
        return f"{problem} within {bound_s:g} s (Prometheus at {self._url} scrapes every {self._log.interval_s:g} s)"

    def _keep(self, key: ReplicaKey, scrape: Scrape, moment: Moment) -> None:
        replica = self._replicas.setdefault(key, Replica(self._target, instance(key)))
        self._sink(replica.rows(scrape, moment))

    def _failed(self) -> Scrape:
        """A scrape that Prometheus does not have, dated by its clock."""
        ahead_ms = self._log.clock.ahead_ms if self._log.clock else 0.0
        return Scrape(time.time_ns() + round(ahead_ms * 1e6), 0.0, (), self.reason)

    def _last(self) -> list[Scrape]:
        """Of each replica that Prometheus scraped at the last border."""
        return [last for key in self._current if key in self._replicas and (last := self._replicas[key].last)]

    def _errors(self) -> str | None:
        return "; ".join(scrape.error for scrape in self._last() if scrape.error is not None) or None
