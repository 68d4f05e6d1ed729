"""Which of the scrapes that come in at a border of a run is the one of its moment."""

from __future__ import annotations

from collections.abc import Callable, Collection

from harness.collector.base import Moment
from harness.collector.raw_samples import ReplicaKey
from harness.collector.scrape import Scrape

ALIGNMENT_MS = 5
"""Prometheus may date a scrape some milliseconds after its true beginning, to keep the distances even."""


class Border:
    """Takes the scrapes of each replica in the order of time; the latest one is held until it is clear what it is."""

    def __init__(self, moment: Moment, asked_ms: int, is_last: Callable[[ReplicaKey, Scrape], bool]) -> None:
        """Only scrapes that began after `asked_ms` count; `is_last` says which of those is the one of `moment`."""
        self.moment = moment
        self._after_ns = (asked_ms + ALIGNMENT_MS) * 10**6
        self._is_last = is_last
        self._held: dict[ReplicaKey, Scrape] = {}
        self._done: set[ReplicaKey] = set()

    def take(self, key: ReplicaKey, scrape: Scrape) -> list[tuple[Scrape, Moment]]:
        """What can be kept now."""
        if key in self._done or scrape.t_ns <= self._after_ns:
            return [(scrape, "periodic")]
        before: list[tuple[Scrape, Moment]] = [(self._held.pop(key), "periodic")] if key in self._held else []
        if not self._is_last(key, scrape):
            self._held[key] = scrape
            return before
        self._done.add(key)
        return [*before, (scrape, self.moment)]

    def missing(self, keys: Collection[ReplicaKey]) -> list[ReplicaKey]:
        """Those whose scrape of the moment has not come."""
        return [key for key in keys if key not in self._done]

    def held(self, key: ReplicaKey) -> Scrape | None:
        """The latest scrape of a replica whose scrape of the moment has not come; None: there was none since."""
        return self._held.get(key)
