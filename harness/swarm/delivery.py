"""Keeps a worker's outbox going, and stays until the master has everything, or can no longer be reached."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import gevent

from harness.record.storage import Folder
from harness.swarm.outbox import Outbox

logger = logging.getLogger(__name__)

SEND_EVERY_S = 0.25
GIVE_UP_S = 60.0
"""After so long without a word of the master; Locust's worker ends itself after the same time."""
UNDELIVERED = "undelivered"
"""Folder, in the worker's current directory, of what never reached the master."""


class Delivery:
    """The parts of one worker in one leg of a run, on their way to the master."""

    def __init__(self, run_id: str, send_message: Callable[[dict[str, Any]], None]) -> None:
        self.outbox = Outbox(run_id, send_message)
        self._run_id = run_id
        self._heard_s = time.monotonic()
        self._is_hopeless = False
        self._sender = gevent.spawn(self._send_now_and_then)

    def acknowledge(self, name: str, number: int) -> None:
        """The master has this piece."""
        self._heard_s = time.monotonic()
        self.outbox.acknowledge(name, number)
        self.outbox.send(self._heard_s)

    def abandon(self) -> None:
        """Nothing can be sent any more, or no answer can come."""
        self._is_hopeless = True

    def finish(self) -> str:
        """Wait until the master has all parts; returns why it has not, with where they are then, or nothing."""
        self._heard_s = time.monotonic()
        self.outbox.send(self._heard_s)
        while self.outbox.parts_waiting and not self._is_hopeless:
            if time.monotonic() - self._heard_s > GIVE_UP_S:
                self.abandon()
            gevent.sleep(0.01)
        if not self.outbox.parts_waiting:
            return ""
        problem = self._keep_here()
        logger.error("kvswarm: %s", problem)
        return problem

    def close(self) -> None:
        self._sender.kill()

    def _send_now_and_then(self) -> None:
        while True:
            gevent.sleep(SEND_EVERY_S)
            self.outbox.send(time.monotonic())

    def _keep_here(self) -> str:
        place = Folder.at(UNDELIVERED).child(self._run_id)
        parts = self.outbox.take_back()
        try:
            for name, data in parts:
                place.write(name, data)
        except OSError as error:
            return f"{len(parts)} parts did not reach the master, and could not be kept in {place.path}: {error}"
        return (
            f"{len(parts)} parts did not reach the master and are kept in {place.path}: copy them into the run's "
            "directory, then run kvswarm repair"
        )
