from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from harness.client.timed import TimedClient
from harness.engines.reading import read_event
from harness.engines.target import Target
from tests.client.posting import ANSWER
from tests.client.scripted import Peer, Script, Server, scripted_server
from tests.client.wire import FIXTURES

Serve = Callable[..., Server]
Connect = Callable[..., TimedClient]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def serve(stack: ExitStack) -> Serve:
    """serve(script, tls=None) starts a server that serves each connection with `script`."""

    def start(script: Script, tls: ssl.SSLContext | None = None) -> Server:
        return stack.enter_context(scripted_server(script, tls))

    return start


@pytest.fixture
def connect(stack: ExitStack) -> Connect:
    """connect(url, fields of the target) makes a client, which is closed before the servers end."""

    def make(url: str, **fields: Any) -> TimedClient:
        client = TimedClient(Target(url=url, **fields), read_event)
        stack.callback(client.close)
        return client

    return make


@pytest.fixture
def server_context() -> ssl.SSLContext:
    """TLS of a server with the certificate in tests/fixtures/tls."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FIXTURES / "tls" / "cert.pem", FIXTURES / "tls" / "key.pem")
    return context


@pytest.fixture
def tls_server(serve: Serve, server_context: ssl.SSLContext) -> str:
    """URL of a server under TLS that gives the usual answer to every request."""

    def script(peer: Peer) -> None:
        while True:
            peer.read_request()
            peer.send(ANSWER)

    return f"https://localhost:{serve(script, server_context).port}/v1"
