"""Scrapes a target's metrics pages through a run, one for each replica, and hands the samples over as rows."""

from __future__ import annotations

import math
import time
from urllib.parse import urlsplit

import gevent
from gevent.event import Event
from gevent.lock import BoundedSemaphore

from harness.collector.base import IsIdle, Moment, Sink
from harness.collector.metrics_page import Sample
from harness.collector.replica import Replica, Restart
from harness.collector.rest import Rest
from harness.collector.scrape import Scrape, scrape
from harness.engines.control import open_session
from harness.engines.target import Target

SETTLE_EVERY_S = 0.25


class PageCollector:
    """A `Collector` of the target's own pages: each has greenlets of its own, so that no page waits for another."""

    notes: list[str]

    def __init__(self, target: Target, sink: Sink, every_s: float = 1.0) -> None:
        """Raises TargetError if the API key or `ca_file` is not there."""
        self._pages = [
            Page(target, url, name, sink, every_s) for url, name in replica_names(target.metrics_urls).items()
        ]
        self._stopping = Event()
        self._greenlets: list[gevent.Greenlet] = []
        self.notes = []

    @property
    def reason(self) -> str | None:
        if not self._pages:
            return "the target has metrics_urls: none"
        reasons = [page.reason for page in self._pages if page.reason is not None]
        if not reasons or len(self._pages) == 1:
            return "; ".join(reasons) or None
        return f"{len(reasons)} of {len(self._pages)} metrics pages: {'; '.join(reasons)}"

    @property
    def available(self) -> bool:
        return any(page.samples is not None for page in self._pages)

    @property
    def samples(self) -> tuple[Sample, ...]:
        of_pages = [page.samples for page in self._pages]
        return tuple(sample for samples in of_pages for sample in samples or ()) if None not in of_pages else ()

    @property
    def missed_ticks(self) -> int:
        return sum(page.missed_ticks for page in self._pages)

    @property
    def restarts(self) -> list[Restart]:
        return [restart for page in self._pages for restart in page.replica.restarts]

    def start(self) -> None:
        """As the protocol says; a page that the server said it does not have is left out."""
        if not self._greenlets:
            self._stopping.clear()
            self._greenlets = [
                gevent.spawn(page.scrape_periodically, self._stopping) for page in self._pages if not page.is_absent
            ]

    def stop(self) -> None:
        self._stopping.set()
        greenlets, self._greenlets = self._greenlets, []
        gevent.joinall(greenlets)
        for greenlet in greenlets:
            greenlet.get()

    def scrape_now(self, moment: Moment) -> None:
        gevent.joinall([gevent.spawn(page.scrape_now, moment) for page in self._pages], raise_error=True)

    def settle(self, moment: Moment, is_idle: IsIdle, timeout_s: float = 10.0) -> bool:
        """As the protocol says; each page settles by itself."""
        settling = [gevent.spawn(page.settle, moment, is_idle, timeout_s) for page in self._pages]
        gevent.joinall(settling, raise_error=True)
        return bool(settling) and all(greenlet.value for greenlet in settling)


class Page:
    """One metrics page. It is never read twice at once: some engines (llama.cpp) reset gauges at each scrape."""

    def __init__(self, target: Target, url: str, name: str, sink: Sink, every_s: float) -> None:
        self.replica = Replica(target.name, name)
        self.reason: str | None = None
        self.is_absent = False
        """The server said that it has no metrics page."""
        self.missed_ticks = 0
        self._url = url
        self._session = open_session(target, url)
        self._sink = sink
        self._every_s = every_s
        self._turn = BoundedSemaphore(1)

    @property
    def samples(self) -> tuple[Sample, ...] | None:
        """Of the last scrape; None: there was none, or it failed."""
        last = self.replica.last
        return None if last is None or last.error is not None else last.samples

    def scrape_now(self, moment: Moment) -> None:
        """One scrape, after the one that may be under way."""
        with self._turn:
            self._keep(self._scrape(), moment)

    def settle(self, moment: Moment, is_idle: IsIdle, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        rest = Rest(is_idle)
        while True:
            with self._turn:
                now = self._scrape()
                settled = rest.is_reached(now)
                last = settled or now.is_absent or time.monotonic() >= deadline
                self._keep(now, moment if last else "periodic")
            if last:
                if not settled and now.error is None:
                    self.reason = f"{self.replica.name} was not idle with its counters at rest within {timeout_s:g} s"
                return settled
            gevent.sleep(SETTLE_EVERY_S)

    def scrape_periodically(self, stopping: Event) -> None:
        began_s, tick = time.monotonic(), 0
        while not stopping.wait(max(0.0, began_s + tick * self._every_s - time.monotonic())):
            self.scrape_now("periodic")
            tick, missed = next_tick(tick, time.monotonic() - began_s, self._every_s)
            self.missed_ticks += missed

    def _scrape(self) -> Scrape:
        result = scrape(self._session, self._url)
        self.reason, self.is_absent = result.error, result.is_absent
        return result

    def _keep(self, result: Scrape, moment: Moment) -> None:
        self._sink(self.replica.rows(result, moment))


def next_tick(tick: int, elapsed_s: float, every_s: float) -> tuple[int, int]:
    """(number of the next tick that is not over yet, how many were missed before it) on a schedule k * `every_s`."""
    upcoming = max(tick + 1, math.ceil(elapsed_s / every_s))
    return upcoming, upcoming - tick - 1


def replica_names(urls: tuple[str, ...]) -> dict[str, str]:
    """URL of a page -> what its replica is called: host:port, with the path where two pages share a host and port."""
    parts = {url: urlsplit(url) for url in urls}
    hosts = [part.netloc for part in parts.values()]
    return {url: part.netloc if hosts.count(part.netloc) == 1 else url.split("//", 1)[1] for url, part in parts.items()}
