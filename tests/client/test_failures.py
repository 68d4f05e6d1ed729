"""Requests that go wrong still give a reply with all that was known, exactly once."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import gevent
import pytest

from harness.client import quiet
from harness.client.reply import Reply
from harness.client.timed import TimedClient
from tests.client.conftest import Connect, Serve
from tests.client.posting import ANSWER, post
from tests.client.scripted import Peer
from tests.client.wire import LAST_CHUNK, ROLE, STREAM_HEAD, chunk, event, word

STARTED = (STREAM_HEAD, ROLE, word("a"), word("b"))
BODY = {"messages": [{"role": "user", "content": "hello"}]}


def hang_after(*pieces: bytes) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.read_request()
        if pieces:
            peer.send(*pieces, pause_s=0.002)
        peer.wait_for_close()

    return script


def wait_until(condition: Callable[[], bool]) -> None:
    with gevent.Timeout(5):
        while not condition():
            gevent.sleep(0.002)


def test_nothing_listens(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    reply = post(connect(f"http://127.0.0.1:{port}"))
    assert reply.status == "connect_error"
    assert reply.error == f"cannot connect to 127.0.0.1:{port}: Connection refused"
    assert (reply.t_send, reply.connect_ms, reply.http_status) == (None, None, None)
    assert reply.is_socket_error


def test_the_host_is_unknown(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr("gevent.socket.getaddrinfo", getaddrinfo)
    reply = post(connect("http://no-such-host.invalid"))
    assert reply.status == "connect_error"
    assert reply.error == "cannot resolve no-such-host.invalid: Name or service not known"


def test_the_host_name_cannot_be_one(connect: Connect) -> None:
    assert post(connect(f"http://{'x' * 70}.invalid")).status == "connect_error"


def test_the_connection_is_not_taken_in_time(connect: Connect) -> None:
    # A listener whose queue is full leaves further connections unanswered.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        port = full.getsockname()[1]
        reply = post(connect(f"http://127.0.0.1:{port}", connect_timeout_s=0.1))
    assert (reply.status, reply.error) == ("connect_error", f"no connection to 127.0.0.1:{port} in 0.1 s")


def test_a_failed_connection_can_be_tried_again(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    client = connect(f"http://127.0.0.1:{port}")
    assert [post(client).status for _ in range(2)] == ["connect_error", "connect_error"]


def test_a_reset_in_mid_stream_keeps_what_came(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(*STARTED, pause_s=0.01)
        peer.reset()

    server = serve(script)
    reply = post(connect(server.url))
    assert (reply.status, reply.text, reply.chunks) == ("stream_error", "ab", 2)
    assert reply.error == "the connection broke: Connection reset by peer"
    assert reply.is_socket_error
    assert reply.ttft_ms is not None
    assert (reply.t_end, reply.e2e_ms) == (None, None)
    assert server.connections == 1


def test_a_close_in_mid_stream_is_truncated(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(*STARTED)

    reply = post(connect(serve(script).url))
    assert (reply.status, reply.text) == ("truncated", "ab")
    assert reply.error == "the server closed the connection before the response was complete"
    assert reply.t_end is not None


def test_a_request_that_gets_no_answer_is_never_sent_twice(serve: Serve, connect: Connect) -> None:
    requests: list[bytes] = []

    def script(peer: Peer) -> None:
        requests.append(peer.read_request()[1])
        peer.send(ANSWER)
        requests.append(peer.read_request()[1])
        peer.close()

    server = serve(script)
    client = connect(server.url)
    assert post(client, "first").status == "ok"
    second = post(client, "second")
    assert (second.status, second.http_status, second.connect_ms) == ("truncated", None, None)
    assert [b"second" in request for request in requests] == [False, True]
    assert server.connections == 1


@pytest.mark.parametrize(
    "error",
    [
        event('{"error":{"message":"out of memory"}}'),
        chunk(b'error: {"code":500,"message":"out of memory","type":"server_error"}\n\n'),  # llama.cpp in 2025
    ],
)
def test_an_error_in_mid_stream(error: bytes, serve: Serve, connect: Connect) -> None:
    reply = post(connect(serve(hang_after(*STARTED, error, LAST_CHUNK)).url))
    assert (reply.status, reply.error, reply.text) == ("stream_error", "out of memory", "ab")
    assert not reply.is_socket_error


def test_something_that_is_no_http_server(serve: Serve, connect: Connect) -> None:
    reply = post(connect(serve(hang_after(b"220 mail.example ESMTP\r\n")).url))
    assert reply.status == "stream_error"
    assert reply.error == "not an HTTP/1.x response: it begins with b'220 mail.example ESMTP\\r\\n'"


@pytest.mark.parametrize("pieces", [(), STARTED])
def test_a_silence_longer_than_the_read_timeout(serve: Serve, connect: Connect, pieces: tuple[bytes, ...]) -> None:
    reply = post(connect(serve(hang_after(*pieces)).url, read_timeout_s=0.1))
    assert (reply.status, reply.error) == ("timeout", "nothing came from the server for 0.1 s")
    assert reply.chunks == (2 if pieces else 0)
    assert (reply.ttft_ms is not None) == bool(pieces)
    assert reply.t_end is None


@pytest.mark.timing
def test_only_silence_times_out_not_a_long_answer(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(*[ANSWER[start : start + 40] for start in range(0, len(ANSWER), 40)], pause_s=0.04)

    reply = post(connect(serve(script).url, read_timeout_s=0.2))
    assert reply.status == "ok"
    assert reply.e2e_ms is not None
    assert reply.e2e_ms > 200


def test_a_server_that_takes_no_bytes_times_out(serve: Serve, connect: Connect) -> None:
    done = threading.Event()

    def script(peer: Peer) -> None:
        done.wait(5)

    reply = post(connect(serve(script).url, read_timeout_s=0.1), "x" * 30_000_000)
    done.set()
    assert (reply.status, reply.error) == ("timeout", "the server took no bytes of the request for 0.1 s")
    assert reply.t_send is not None


def in_flight(client: TimedClient, *server_said: bytes) -> tuple[gevent.Greenlet, list[Reply]]:
    """A greenlet that waits in `post`, having read all of that, and the list that its reply goes to."""
    replies: list[Reply] = []
    job = gevent.spawn(client.post, "/chat/completions", BODY, {}, replies.append)
    connection = client._connection
    wait_until(lambda: sum(map(len, connection._exchange.response._reads)) >= sum(map(len, server_said)))
    return job, replies


def test_cancel_returns_what_had_arrived(serve: Serve, connect: Connect) -> None:
    server = serve(hang_after(*STARTED))
    client = connect(server.url)
    job, replies = in_flight(client, *STARTED)
    client.cancel()
    reply = job.get(timeout=5)
    assert replies == [reply]
    assert (reply.status, reply.text, reply.t_end) == ("cancelled", "ab", None)
    assert reply.ttft_ms is not None


def test_a_client_can_go_on_after_a_cancel_on_a_new_connection(serve: Serve, connect: Connect) -> None:
    answers = iter([STARTED, (ANSWER,)])

    def script(peer: Peer) -> None:
        hang_after(*next(answers))(peer)

    server = serve(script)
    client = connect(server.url)
    job, _ = in_flight(client, *STARTED)
    client.cancel()
    assert job.get(timeout=5).status == "cancelled"
    assert post(client).status == "ok"
    assert server.connections == 2


def test_closing_the_client_ends_the_request_under_way(serve: Serve, connect: Connect) -> None:
    client = connect(serve(hang_after(*STARTED)).url)
    job, replies = in_flight(client, *STARTED)
    client.close()
    assert job.get(timeout=5).status == "cancelled"
    assert [reply.text for reply in replies] == ["ab"]


def test_cancel_without_a_request_does_nothing(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        for _ in range(2):
            peer.read_request()
            peer.send(ANSWER)

    client = connect(serve(script).url)
    client.cancel()
    assert post(client).status == "ok"
    client.cancel()
    assert post(client).status == "ok"


def test_cancel_while_the_connection_is_being_opened(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        client = connect(f"http://127.0.0.1:{full.getsockname()[1]}")
        job, replies = in_flight(client)
        gevent.sleep(0.05)
        client.cancel()
        reply = job.get(timeout=5)
    assert replies == [reply]
    assert (reply.status, reply.t_send) == ("cancelled", None)


def test_a_killed_greenlet_hands_over_its_reply_and_closes_the_connection(serve: Serve, connect: Connect) -> None:
    left = threading.Event()

    def script(peer: Peer) -> None:
        hang_after(*STARTED)(peer)
        left.set()

    job, replies = in_flight(connect(serve(script).url), *STARTED)
    job.kill(timeout=5)
    assert isinstance(job.value, gevent.GreenletExit)
    [reply] = replies
    assert (reply.status, reply.text) == ("cancelled", "ab")
    assert left.wait(5)


@pytest.mark.parametrize("way", ["kill", "cancel"])
def test_an_answer_that_is_all_there_is_whole_however_the_wait_for_its_turn_ends(
    serve: Serve, connect: Connect, way: str
) -> None:
    client = connect(serve(hang_after(ANSWER)).url)
    with quiet._TURN:
        job, replies = in_flight(client, ANSWER)
        job.kill(timeout=5) if way == "kill" else client.cancel()
    gevent.joinall([job], timeout=5)
    [reply] = replies
    assert (reply.status, reply.text, reply.error) == ("ok", "ab", None)
    assert reply.t_end is not None


def test_a_callers_own_timeout_goes_through_after_the_reply(serve: Serve, connect: Connect) -> None:
    client = connect(serve(hang_after(*STARTED)).url)
    replies: list[Reply] = []
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.2):
        client.post("/chat/completions", BODY, {}, replies.append)
    assert [reply.status for reply in replies] == ["cancelled"]


def test_a_step_of_the_clock_during_a_request(serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets = iter([0, 0, 0, 5_000_000])
    monkeypatch.setattr("harness.client.connection.clock_offset_ns", lambda: next(offsets))
    server = serve(hang_after(ANSWER))
    assert post(connect(server.url)).clock_stepped is False
    stepped = post(connect(server.url))
    assert (stepped.status, stepped.clock_stepped, stepped.ttft_ms, stepped.e2e_ms) == ("ok", True, None, None)
