"""Stand-ins for Locust's master runner and the workers that are connected to it."""

from __future__ import annotations

from typing import Any

import gevent

from harness.swarm.handshake import (
    ANSWER,
    ASK,
    CLOCK,
    FILES,
    REFUSED,
    TIME,
    Credentials,
    files_message,
    own_credentials,
    time_message,
)
from harness.swarm.presence import PATIENCE_S
from tests.swarm.fakes import through_locust

OWN = own_credentials()


class Worker:
    """Answers as harness.swarm.worker_side does, but for what is said otherwise."""

    def __init__(self, credentials: Credentials | None = OWN, files: dict[str, Any] | None = None, ahead_ns: int = 0):
        """`credentials`: None is a worker that does not know the question."""
        self.credentials = credentials
        self.files = files
        self.ahead_ns = ahead_ns
        self.id, self.state, self.heartbeat = "", "ready", PATIENCE_S
        self.heard: list[str] = []
        self.reason = ""

    def answers(self, kind: str, data: Any) -> list[tuple[str, dict[str, Any]]]:
        self.heard.append(kind)
        if kind == REFUSED:
            self.reason = data["reason"]
        if self.credentials is None:
            return []
        if kind == ASK:
            files = {"number": data["number"], **self.files} if self.files else files_message(data)
            return [(ANSWER, {"number": data["number"], **self.credentials.to_message()}), (FILES, files)]
        if kind == CLOCK:
            answer = time_message(data)
            return [(TIME, {**answer, "seen_ns": answer["seen_ns"] + self.ahead_ns})]
        return []


class Nodes(dict[str, Worker]):
    """As Locust's WorkerNodes."""

    @property
    def ready(self) -> list[Worker]:
        return list(self.values())

    all = ready


class Runner:
    """Locust's master runner, as far as the roll call knows it; messages arrive a moment later."""

    def __init__(self, **workers: Worker) -> None:
        self.clients = Nodes(workers)
        for name, worker in workers.items():
            worker.id = name
        self._listeners: dict[str, Any] = {}

    def get_worker_index(self, client_id: str) -> int:
        return list(self.clients).index(client_id)

    def register_message(self, kind: str, listener: Any) -> None:
        self._listeners[kind] = listener

    def send_message(self, kind: str, data: Any, client_id: str) -> None:
        gevent.spawn(self._arrives, kind, through_locust(data) if data is not None else None, client_id)

    def _arrives(self, kind: str, data: Any, client_id: str) -> None:
        for answer, content in self.clients[client_id].answers(kind, data) if client_id in self.clients else ():
            self._listeners[answer](msg=Message(client_id, through_locust(content)))


class Message:
    def __init__(self, node_id: str, data: Any) -> None:
        self.node_id, self.data = node_id, data
