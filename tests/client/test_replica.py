"""Which replica answered, by the header that the target names."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from harness.engines.target import Target
from tests.client.conftest import Connect, Serve
from tests.client.posting import ANSWER, post
from tests.client.scripted import Peer

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nX-Replica: pod-7\r\nContent-Length: 2\r\n\r\n{}"


def script(peer: Peer) -> None:
    peer.read_request()
    peer.send(ANSWER.replace(b"\r\n", b"\r\nx-replica:  10.0.0.7:8000 \r\n", 1))
    peer.read_request()
    peer.send(BUSY)
    peer.read_request()
    peer.send(ANSWER)


@pytest.mark.parametrize(
    ("fields", "told"),
    [({"replica_header": "X-Replica"}, ["10.0.0.7:8000", "pod-7", None]), ({}, [None] * 3)],
)
def test_the_header_is_read_off_every_response(
    serve: Serve, connect: Connect, fields: dict[str, Any], told: list[str | None]
) -> None:
    client = connect(serve(script).url, **fields)
    replies = [post(client) for _ in range(3)]
    assert [one.status for one in replies] == ["ok", "http_error", "ok"]
    assert [one.replica for one in replies] == told


@pytest.mark.parametrize("name", ["", "X Replica", "X-Replica:"])
def test_what_is_no_name_of_a_header_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="replica_header"):
        Target(url="http://h", replica_header=name)
