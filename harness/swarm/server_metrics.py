"""The target's own metrics through a run: scraped, and written to the run's directory part by part."""

from __future__ import annotations

import logging
import time
from typing import Any

import gevent

from harness.collector import Collector, Moment, open_collector
from harness.record.schema import SERVER_METRICS
from harness.record.writer import PartWriter
from harness.swarm.plan import FLUSH_EVERY_S
from harness.swarm.prepare import Lane

logger = logging.getLogger(__name__)


class ServerMetrics:
    """The collector of one target and the writer of what it brings."""

    def __init__(self, run_id: str, number: int, lane: Lane, folder: str) -> None:
        """`number`: the target's within the run, so that its parts have names of their own."""
        self._run_id = run_id
        self._name = lane.target.name
        self._is_idle = lane.engine.is_idle
        self._writer = PartWriter(
            folder, f"server_metrics/part-{number}", SERVER_METRICS, in_thread=gevent.get_hub().threadpool.apply
        )
        self.collector: Collector = open_collector(lane.target, sink=self._keep)
        self._next_flush_s = 0.0
        self._is_wanted = bool(lane.target.metrics_urls) or lane.target.prometheus is not None
        self._said: list[str] = []

    def _keep(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._writer.add({"run_id": self._run_id, **row})

    def look_before(self) -> None:
        """The first scrape; says so if the target has no metrics to scrape."""
        self.collector.scrape_now("before")
        self._warn()

    def settle(self, moment: Moment) -> None:
        """The scrape of a border, taken when the engine is idle and its counters stand still."""
        if not self.collector.settle(moment, self._is_idle):
            self._warn()

    def _warn(self) -> None:
        """Say what is wrong with the metrics, once."""
        reason = self.collector.reason
        if self._is_wanted and reason is not None and reason not in self._said:
            self._said.append(reason)
            logger.warning("kvswarm: %s: %s", self._name, reason)

    def start(self) -> None:
        """Begin the periodic scrapes."""
        self.collector.start()
        self._next_flush_s = time.monotonic() + FLUSH_EVERY_S

    def flush_if_due(self) -> None:
        """Write what has come since the last part, every now and then: call it often."""
        if time.monotonic() >= self._next_flush_s:
            self._next_flush_s += FLUSH_EVERY_S
            self._flush()

    def finish(self) -> None:
        """End the periodic scrapes, take the last one, write the last part."""
        self.collector.stop()
        self.settle("after")
        self._flush()

    def _flush(self) -> None:
        try:
            self._writer.flush()
        except OSError as error:
            logger.error("kvswarm: server metrics could not be written: %s", error)

    @property
    def parts(self) -> list[tuple[str, int]]:
        return self._writer.parts

    @property
    def problems(self) -> list[str]:
        """Why the metrics do not tell what they should; known when it is finished."""
        problems = [f"{self._name}: {restart}" for restart in self.collector.restarts]
        if self._writer.unwritten_rows:
            problems.append("server metrics could not be written; the messages above say why")
        return problems

    @property
    def notes(self) -> list[str]:
        """What a reader of the metrics has to know; known when it is finished."""
        notes = [*self._said, *self.collector.notes]
        if missed := self.collector.missed_ticks:
            notes.append(f"{missed} scrapes were left out, as the ones before took over a second")
        return notes
