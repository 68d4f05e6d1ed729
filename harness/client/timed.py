"""The timed client: post a JSON body, get a `Reply` that says what came when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson

from harness.client.connection import Connection
from harness.client.exchange import Exchange
from harness.client.message import ReadEvent
from harness.client.reply import Reply, read_reply
from harness.client.tls import client_context
from harness.engines.target import Target

_DEFAULT_PORTS = {"http": 80, "https": 443}


class TimedClient:
    """One simulated user's connection to a target. One request at a time; only `cancel` is for other greenlets."""

    def __init__(self, target: Target, read_event: ReadEvent) -> None:
        """`read_event` is that of the target's adapter. Nothing is sent yet.

        Raises TargetError if the target's API key is not set or its CA file cannot be read.
        """
        parts = urlsplit(target.url)
        tls = client_context(target.tls_verify, target.ca_file) if parts.scheme == "https" else None
        self._connection = Connection(
            parts.hostname or "",
            parts.port or _DEFAULT_PORTS[parts.scheme],
            tls,
            connect_timeout_s=target.connect_timeout_s,
            read_timeout_s=target.read_timeout_s,
        )
        self._read_event = read_event
        self._replica_header = (target.replica_header or "").lower()
        self._prefix = parts.path.rstrip("/")
        self._headers = _lower_case(
            {
                "Host": parts.netloc,
                "User-Agent": "kvswarm",
                "Accept": "text/event-stream, application/json",
                # A compressed stream comes in blocks, not token by token.
                "Accept-Encoding": "identity",
                **target.request_headers(),
                "Content-Type": "application/json",
            }
        )

    @property
    def is_busy(self) -> bool:
        """A request is under way."""
        return self._connection.is_busy

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        on_reply: Callable[[Reply], None],
    ) -> Reply:
        """Post `body` to `path` below the target's URL, and wait for the end of the answer.

        `on_reply` is called with the reply exactly once, before it is returned, and also when the greenlet is killed
        while it waits: then the kill goes on after it. A request that fails raises nothing; see `Reply.status`.
        """
        request = self._encode(path, body, headers)
        exchange = Exchange()
        try:
            self._connection.exchange(request, exchange)
        finally:
            reply = read_reply(exchange, self._read_event, self._replica_header)
            on_reply(reply)
        return reply

    def cancel(self) -> None:
        """End the request under way, if there is one: its `post` returns with what has arrived, as `cancelled`."""
        self._connection.cancel()

    def close(self) -> None:
        """Close the connection. A later `post` opens another."""
        self._connection.close()

    def _encode(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bytes:
        content = orjson.dumps(body)
        lines = [f"POST {self._prefix}{path} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in {**self._headers, **_lower_case(headers)}.items()]
        lines.append(f"content-length: {len(content)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


def _lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
