"""Which workers are still there: a link that is cut for a while loses none, a process that died is noticed soon."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Any

import locust.runners
import zmq
from locust.rpc import Message
from locust.runners import HEARTBEAT_DEAD_INTERNAL, STATE_MISSING

logger = logging.getLogger(__name__)

PATIENCE_S = 30
"""How long a worker may be silent. After a cut, TCP tries again at growing intervals: it can take as long again as the
link was cut until the worker is heard."""
SILENT_AFTER_S = 5
SUSPECT_AFTER_S = 2
HUNG_UP_S = 3.0
"""For so long a worker's connection must have been closed, and not come back, until the worker counts as lost."""


def be_patient() -> None:
    """Let Locust's master wait as long, too: after its own 3 s it would deal users anew, or end the run."""
    locust.runners.HEARTBEAT_LIVENESS = PATIENCE_S


class Presence:
    """Looks after the workers of one leg of a run; call `look` about once a second."""

    def __init__(self, runner: Any, planned: dict[str, int]) -> None:
        """`planned`: Locust's client id -> number of the worker."""
        self.lost: dict[str, str] = {}
        """Client id -> what became of it."""
        self.notes: list[str] = []
        self._runner = runner
        self._planned = planned
        self._silent: dict[str, float] = {}
        """Client id -> since when it is silent, monotonic."""
        self._hung_up: dict[str, float] = {}
        self._next_look_s = 0.0

    def look(self, done: Collection[str]) -> list[str]:
        """Which workers, but for those that are `done`, are lost since the last look. Looks at most once a second."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return []
        self._next_look_s = now_s + 1.0
        found = []
        for client_id in self._planned:
            if client_id in done or client_id in self.lost:
                continue
            fate = self._fate(client_id, now_s)
            if fate is not None:
                self.lost[client_id] = fate
                found.append(client_id)
        return found

    def _fate(self, client_id: str, now_s: float) -> str | None:
        """What became of it; None: it is there, or may come back."""
        node = self._runner.clients.get(client_id)
        if node is None:
            return "it has left"
        if node.state == STATE_MISSING:
            return f"it has been silent for {PATIENCE_S} s"
        silent_s = PATIENCE_S - node.heartbeat
        if silent_s < SUSPECT_AFTER_S:
            self._is_back(client_id, now_s)
            return None
        if not self._has_hung_up(client_id):
            self._hung_up.pop(client_id, None)
        elif now_s - self._hung_up.setdefault(client_id, now_s) >= HUNG_UP_S:
            node.heartbeat = HEARTBEAT_DEAD_INTERNAL  # Locust, too, need not wait any longer
            return "its connection was closed and it did not come back"
        if silent_s >= SILENT_AFTER_S and client_id not in self._silent:
            self._silent[client_id] = now_s - silent_s
            logger.warning(
                "kvswarm: worker %d has been silent for %d s; it may come back within %d s",
                self._planned[client_id],
                silent_s,
                PATIENCE_S,
            )
        return None

    def _is_back(self, client_id: str, now_s: float) -> None:
        since_s = self._silent.pop(client_id, None)
        self._hung_up.pop(client_id, None)
        if since_s is not None:
            sentence = (
                f"worker {self._planned[client_id]} was out of the master's reach for about {now_s - since_s:.0f} s; "
                "it went on meanwhile"
            )
            self.notes.append(sentence)
            logger.warning("kvswarm: %s", sentence)

    def _has_hung_up(self, client_id: str) -> bool:
        """Whether its connection is closed; the operating system does that for a process that was killed.

        A router socket otherwise drops what cannot be sent without a word (ROUTER_MANDATORY in the manual of ZeroMQ).
        """
        socket = self._runner.server.socket
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        try:
            message: Any = Message
            socket.send_multipart([client_id.encode(), message("heartbeat", None, client_id).serialize()], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            return error.errno == zmq.EHOSTUNREACH
        finally:
            socket.setsockopt(zmq.ROUTER_MANDATORY, 0)
        return False
