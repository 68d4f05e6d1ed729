"""A simulated engine with faults, and a client of it that asks for more."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.embedded.server import RunningServer, running_server
from harness.engines.detect import connect
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.sim.options import SimOptions
from harness.workload.words import CANDIDATES

TOKENS = 8
CHAT = [{"role": "user", "content": " ".join(CANDIDATES[:40])}]


class Faulty:
    """A server, and a client of it."""

    def __init__(self, server: RunningServer, **fields: Any) -> None:
        self.url = server.url
        self.target = Target(url=server.url, **fields)
        self.engine: OpenAIEngine = connect(self.target)

    def ask(self, fault: str = "", tokens: int = TOKENS, **fields: Any) -> Reply:
        """`fields`: of the target, other than usual."""
        payload = self.engine.chat_payload(CHAT, tokens)
        return self.post("/chat/completions", payload, fault, **fields)

    def ask_plainly(self, fault: str = "") -> Reply:
        """For an answer in one piece."""
        payload = self.engine.chat_payload(CHAT, TOKENS)
        payload = {name: value for name, value in payload.items() if name not in ("stream", "stream_options")}
        return self.post("/chat/completions", payload, fault)

    def post(self, path: str, payload: Any, fault: str, **fields: Any) -> Reply:
        client = TimedClient(self.target.model_copy(update=fields), self.engine.read_event)
        try:
            return client.post(path, payload, {"X-Sim-Fault": fault} if fault else {}, lambda reply: None)
        finally:
            client.close()


def get(url: str, path: str, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


@contextmanager
def started(**options: Any) -> Iterator[Faulty]:
    with running_server(SimOptions(**{"manner": "vllm", "preset": "h100-8b", **options})) as server:
        yield Faulty(server)
