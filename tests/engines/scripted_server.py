"""A small HTTP server on loopback that answers what a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]
"""path (with the query), headers (names in lower case), body (bytes)."""
Routes = Mapping[str, Any]
"""Maps "METHOD /path" to an answer: a dict or list is sent as JSON, a str as text, bytes as they are, each with status
200 unless it is the second part of (status, body). A callable is given the `Request` and returns such an answer.
Other paths are answered with 404."""
Serve = Callable[[Routes], str]
"""Starts a server with these routes; returns its root URL."""


@contextmanager
def scripted_servers() -> Iterator[Serve]:
    """Stops at the end of the block what was started within it."""
    servers: list[ThreadingHTTPServer] = []

    def serve(routes: Routes) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(routes))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def _handler(routes: Routes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            answer = routes.get(f"{self.command} {self.path}", (404, {"error": {"message": "File Not Found"}}))
            if callable(answer):
                answer = answer({"path": self.path, "headers": headers, "body": body})
            status, content = answer if isinstance(answer, tuple) else (200, answer)
            if not isinstance(content, bytes):
                content = (content if isinstance(content, str) else json.dumps(content)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _answer

        def log_message(self, *_: Any) -> None:
            """Nothing: pytest shows what a test needs."""

    return Handler
