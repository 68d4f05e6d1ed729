"""The target's own metrics through a run: scraped, and written to the run's directory part by part."""

from __future__ import annotations

import logging
import time
from typing import Any

import gevent

from harness.collector.sampler import Collector, Moment
from harness.record.schema import SERVER_METRICS
from harness.record.writer import PartWriter
from harness.swarm.plan import FLUSH_EVERY_S
from harness.swarm.prepare import Preparation

logger = logging.getLogger(__name__)


class ServerMetrics:
    """The collector of one run and the writer of what it brings."""

    def __init__(self, made: Preparation, folder: str) -> None:
        self._run_id = made.run_id
        self._is_idle = made.engine.is_idle
        self._writer = PartWriter(
            folder, "server_metrics/part", SERVER_METRICS, in_thread=gevent.get_hub().threadpool.apply
        )
        self._collector = Collector(made.target, sink=self._keep)
        self._next_flush_s = 0.0

    def _keep(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._writer.add({"run_id": self._run_id, **row})

    def look_before(self) -> None:
        """The first scrape; says so if the target has no metrics to scrape."""
        self._collector.scrape_now("before")
        if self._collector.reason:
            logger.warning("kvswarm: %s", self._collector.reason)

    def settle(self, moment: Moment) -> None:
        """The scrape of a border, taken when the engine is idle and its counters stand still."""
        self._collector.settle(moment, self._is_idle)

    def start(self) -> None:
        """Begin the periodic scrapes."""
        self._collector.start()
        self._next_flush_s = time.monotonic() + FLUSH_EVERY_S

    def flush_if_due(self) -> None:
        """Write what has come since the last part, every now and then: call it often."""
        if time.monotonic() >= self._next_flush_s:
            self._next_flush_s += FLUSH_EVERY_S
            self._flush()

    def finish(self) -> None:
        """End the periodic scrapes, take the last one, write the last part."""
        self._collector.stop()
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
        """Why rows are missing; known when it is finished."""
        if self._writer.unwritten_rows:
            return ["server metrics could not be written; the messages above say why"]
        return []

    @property
    def notes(self) -> list[str]:
        """What a reader of the metrics has to know; known when it is finished."""
        if missed := self._collector.missed_ticks:
            return [f"{missed} scrapes were left out, as the ones before took over a second"]
        return []
