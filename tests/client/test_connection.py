from __future__ import annotations

import json
import socket
import threading

import gevent
import pytest

from tests.client.conftest import Connect, Serve
from tests.client.posting import ANSWER, post
from tests.client.scripted import Peer
from tests.client.wire import LAST_CHUNK, STREAM_HEAD, chunk

PLAIN_BODY = b'{"choices":[{"message":{"content":"plain"},"finish_reason":"stop"}]}'
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(PLAIN_BODY), PLAIN_BODY)


def test_the_request_is_compact_utf8_json_below_the_targets_path(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def script(peer: Peer) -> None:
        seen.append(peer.read_request())
        peer.send(ANSWER)

    monkeypatch.setenv("KEY_OF_THE_TEST", "s3cret")
    server = serve(script)
    client = connect(server.url, headers={"X-Team": "blue"}, api_key_env="KEY_OF_THE_TEST")
    client.post("/chat/completions", {"a": "ä", "b": [1, 2]}, {"X-Request-Id": "r-1"}, lambda reply: None)
    [(head, body)] = seen
    request_line, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    assert request_line == "POST /v1/chat/completions HTTP/1.1"
    assert body == '{"a":"ä","b":[1,2]}'.encode()
    assert headers["host"] == f"127.0.0.1:{server.port}"
    assert headers["content-length"] == str(len(body))
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert headers["authorization"] == "Bearer s3cret"
    assert headers["x-team"] == "blue"
    assert headers["x-request-id"] == "r-1"


def test_a_connection_carries_many_requests_and_only_the_first_pays_for_opening_it(
    serve: Serve, connect: Connect
) -> None:
    def script(peer: Peer) -> None:
        for answer in (ANSWER, PLAIN, ANSWER):
            peer.read_request()
            peer.send(answer)
        peer.wait_for_close()

    server = serve(script)
    client = connect(server.url)
    replies = [post(client) for _ in range(3)]
    assert [reply.status for reply in replies] == ["ok", "ok", "ok"]
    assert [reply.text for reply in replies] == ["ab", "plain", "ab"]
    assert [reply.connect_ms is None for reply in replies] == [False, True, True]
    assert server.connections == 1


def test_a_connection_that_the_server_announces_to_close_is_not_used_again(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(ANSWER.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        peer.wait_for_close()

    server = serve(script)
    client = connect(server.url)
    assert [post(client).status for _ in range(2)] == ["ok", "ok"]
    assert server.connections == 2


@pytest.mark.parametrize("loop_runs", [True, False])
def test_a_close_between_two_requests_is_noticed_before_the_next_is_sent(
    serve: Serve, connect: Connect, loop_runs: bool
) -> None:
    may_close, closed = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(ANSWER)
        assert may_close.wait(10)
        peer.close()
        closed.set()

    server = serve(script)
    client = connect(server.url)
    assert post(client).status == "ok"
    may_close.set()
    assert closed.wait(5)
    if loop_runs:
        gevent.sleep(0.02)
    second = post(client)
    assert second.status == "ok"
    assert second.connect_ms is not None
    assert server.connections == 2


@pytest.mark.parametrize("at_once", [True, False])
def test_unasked_bytes_after_an_answer_end_the_connection_and_harm_nobody(
    serve: Serve, connect: Connect, at_once: bool
) -> None:
    sent = threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        unasked = b"HTTP/1.1 408 Request Timeout\r\n\r\n"
        if at_once:
            peer.send(ANSWER + unasked)
        else:
            peer.send(ANSWER)
            peer.send(unasked)
        sent.set()
        peer.wait_for_close()

    server = serve(script)
    client = connect(server.url)
    for _ in range(2):
        assert post(client).status == "ok"
        assert sent.wait(5)
        sent.clear()
    assert server.connections == 2


def test_an_http_1_0_stream_ends_with_the_close(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        peer.send(b": keepalive 1/2\n\n", b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n', pause_s=0.01)
        peer.send(b"data: [DONE]\n\n")

    server = serve(script)
    client = connect(server.url)
    assert [post(client).text for _ in range(2)] == ["x", "x"]
    assert server.connections == 2


def test_a_long_request_is_sent_whole_through_a_slow_reader(serve: Serve, connect: Connect) -> None:
    text = "x" * 8_000_000
    seen: list[str] = []

    def script(peer: Peer) -> None:
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        seen.append(json.loads(peer.read_request()[1])["messages"][0]["content"])
        peer.send(ANSWER)

    assert post(connect(serve(script).url), text).status == "ok"
    assert seen == [text]


def test_an_answer_before_the_request_was_read_is_taken(serve: Serve, connect: Connect) -> None:
    gave_up = threading.Event()

    def script(peer: Peer) -> None:
        peer.sock.recv(1_000)
        peer.send(b'HTTP/1.1 413 Too Large\r\nContent-Length: 20\r\n\r\n{"error":"too much"}')
        assert gave_up.wait(10)

    server = serve(script)
    client = connect(server.url)
    for _ in range(2):
        gave_up.clear()
        reply = post(client, "x" * 30_000_000)
        gave_up.set()
        assert (reply.status, reply.http_status, reply.error) == ("http_error", 413, "too much")
    assert server.connections == 2, "a connection in the middle of a request cannot carry another"


def test_a_read_that_only_looks_like_the_last_does_not_end_the_answer(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(STREAM_HEAD)
        for data in (b'{"choices":[{"text":"a"}]}', b'{"choices":[{"text":"b"}]}', b"[DONE]"):
            peer.send(chunk(b"data: " + data + b"\r\n"), chunk(b"\r\n"), pause_s=0.01)
        peer.send(LAST_CHUNK)
        peer.wait_for_close()

    reply = post(connect(serve(script).url))
    assert (reply.status, reply.text) == ("ok", "ab")


def test_two_clients_wait_for_their_answers_at_the_same_time(serve: Serve, connect: Connect) -> None:
    both_asked = threading.Barrier(2)

    def script(peer: Peer) -> None:
        peer.read_request()
        both_asked.wait(5)
        peer.send(ANSWER)

    server = serve(script)
    jobs = [gevent.spawn(post, connect(server.url)) for _ in range(2)]
    gevent.joinall(jobs, timeout=5, raise_error=True)
    assert [job.value.text for job in jobs] == ["ab", "ab"]
