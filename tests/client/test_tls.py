from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest

from harness.client.tls import client_context
from harness.errors import TargetError
from tests.client.conftest import Connect, Serve
from tests.client.posting import ANSWER, post
from tests.client.scripted import Peer
from tests.client.wire import FIXTURES, ROLE, STREAM_HEAD, word

CERTIFICATE = FIXTURES / "tls" / "cert.pem"


def test_a_stream_under_tls_is_stamped_here_and_the_connection_is_kept(tls_server: str, connect: Connect) -> None:
    client = connect(tls_server, ca_file=CERTIFICATE)
    replies = [post(client) for _ in range(2)]
    assert [(reply.status, reply.text, reply.clock) for reply in replies] == [("ok", "ab", "user")] * 2
    assert [reply.connect_ms is None for reply in replies] == [False, True]
    assert [reply.stamp_error_ms for reply in replies] == [None, None]


def test_a_certificate_that_nobody_vouches_for_is_refused_and_nothing_sent(tls_server: str, connect: Connect) -> None:
    reply = post(connect(tls_server))
    assert (reply.status, reply.t_send) == ("connect_error", None)
    assert reply.error is not None
    assert "certificate verify failed" in reply.error


def test_a_certificate_for_another_name_is_refused(
    tls_server: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))]

    monkeypatch.setattr("gevent.socket.getaddrinfo", getaddrinfo)
    reply = post(connect(tls_server.replace("localhost", "other.example"), ca_file=CERTIFICATE))
    assert reply.status == "connect_error"
    assert reply.error is not None
    assert "certificate verify failed" in reply.error


def test_verification_can_be_turned_off(tls_server: str, connect: Connect) -> None:
    assert post(connect(tls_server, tls_verify=False)).status == "ok"


def test_a_server_without_tls_is_a_failed_connection(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.sock.recv(1_000)
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    reply = post(connect(serve(script).url.replace("http:", "https:")))
    assert (reply.status, reply.t_send) == ("connect_error", None)


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_stream_up_to_the_close_ends_with_it(
    serve: Serve, connect: Connect, server_context: ssl.SSLContext, says_goodbye: bool
) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.0 200 OK\r\n\r\n", b'data: {"choices":[{"text":"x"}]}\n\ndata: [DONE]\n\n')
        if says_goodbye:
            assert isinstance(peer.sock, ssl.SSLSocket)
            peer.sock.unwrap()

    url = serve(script, server_context).url.replace("http:", "https:")
    reply = post(connect(url, ca_file=CERTIFICATE))
    assert (reply.status, reply.text) == ("ok", "x")


def test_a_stream_that_breaks_off_is_truncated(serve: Serve, connect: Connect, server_context: ssl.SSLContext) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(STREAM_HEAD, ROLE, word("a"))

    url = serve(script, server_context).url.replace("http:", "https:")
    reply = post(connect(url, ca_file=CERTIFICATE))
    assert (reply.status, reply.text) == ("truncated", "a")


def test_a_long_request_goes_through_tls(serve: Serve, connect: Connect, server_context: ssl.SSLContext) -> None:
    lengths: list[int] = []

    def script(peer: Peer) -> None:
        lengths.append(len(peer.read_request()[1]))
        peer.send(ANSWER)

    url = serve(script, server_context).url.replace("http:", "https:")
    assert post(connect(url, ca_file=CERTIFICATE), "x" * 3_000_000).status == "ok"
    assert lengths[0] > 3_000_000


def test_a_ca_file_that_is_none_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "missing.pem"):
        with pytest.raises(TargetError, match="ca_file"):
            client_context(True, path)
