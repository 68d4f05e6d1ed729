"""The scrapes that a Prometheus server took of one target, each read once."""

from __future__ import annotations

from collections.abc import Iterator

import gevent

from harness.collector.prometheus_server import DEFAULT_INTERVAL_S, Clock, PrometheusError, PrometheusServer
from harness.collector.raw_samples import (
    ReplicaKey,
    by_replica,
    family_and_type,
    guessed,
    instance,
    replica_key,
)
from harness.collector.scrape import Scrape

MARGIN_S = 2.0
"""How long Prometheus may need, beyond a scrape's own time, until the scrape can be asked for."""
CHUNK_SCRAPES = 20
"""Scrapes of a replica in one answer, so that none grows too big to be read at once."""


class ScrapeLog:
    """Every method raises PrometheusError, after which nothing is lost: the next look goes on where this one ended.

    A scrape is dated when it begins and can be read when it has ended, within its interval at the latest. So each look
    goes back over the last interval, and takes of each replica what is later than what it has seen of it.
    """

    def __init__(self, server: PrometheusServer) -> None:
        self.interval_s = DEFAULT_INTERVAL_S
        self.clock: Clock | None = None
        """As of the first look; None: there was none."""
        self._server = server
        self._began_ms = self._read_ms = 0
        self._seen_ms: dict[ReplicaKey, int] = {}
        """Time of the last scrape that was read of a replica."""
        self._types: dict[str, str] = {}
        self._untyped: set[str] = set()
        """Names whose type Prometheus was asked for in vain."""

    def now_ms(self) -> int:
        """Prometheus's own time. What is scraped after the first call can be read."""
        clock = self._server.clock()
        if self.clock is None:
            self.clock = clock
            self._began_ms = self._read_ms = clock.now_ms
        return clock.now_ms

    def replicas(self) -> tuple[ReplicaKey, ...]:
        """Those that are scraped now; learns how often, too."""
        found = tuple(replica_key(labels) for labels, _ in self._server.last_scrapes())
        url, selector = self._server.url, self._server.selector
        if not found:
            raise PrometheusError(f"Prometheus at {url} scrapes no target with the labels {selector}")
        names = [instance(key) for key in found]
        if twin := next((name for name in names if names.count(name) > 1), None):
            raise PrometheusError(
                f"Prometheus at {url} scrapes {twin} {names.count(twin)} times under {selector}: "
                "add a label to the selector that tells one from the others"
            )
        self.interval_s = self._server.interval_s()
        return found

    def has_unread(self) -> bool:
        """A cheap question, to be asked often."""
        return any(
            at_ms > self._seen_ms.get(replica_key(labels), self._began_ms)
            for labels, at_ms in self._server.last_scrapes()
        )

    def unread(self) -> Iterator[tuple[ReplicaKey, Scrape]]:
        """The scrapes that were not read yet, those of each replica in the order of time."""
        now_ms = self.now_ms()
        lateness_ms = round((self.interval_s + MARGIN_S) * 1e3)
        chunk_ms = round(self.interval_s * CHUNK_SCRAPES * 1e3)
        while self._read_ms < now_ms:
            to_ms = min(self._read_ms + chunk_ms, now_ms)
            answer = self._server.samples(self._read_ms - lateness_ms, to_ms)
            for key, samples in by_replica(answer, pause=gevent.sleep).items():
                families = self._families(samples.names)
                for scrape in samples.scrapes(self._seen_ms.get(key, self._began_ms), families):
                    self._seen_ms[key] = scrape.t_ns // 10**6
                    yield key, scrape
            self._read_ms = to_ms

    def _families(self, names: set[str]) -> dict[str, tuple[str, str]]:
        """Name of a sample -> family and type."""
        new = {name for name in names - self._untyped if family_and_type(name, self._types) is None}
        if new:
            self._types = self._server.types()
            self._untyped |= {name for name in new if family_and_type(name, self._types) is None}
        return {name: family_and_type(name, self._types) or guessed(name, names) for name in names}
