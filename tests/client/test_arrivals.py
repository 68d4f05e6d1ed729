"""The stamps are those of the arrivals, however late this process gets round to reading."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import gevent
import pytest

from tests.client.conftest import Connect, Serve
from tests.client.posting import ANSWER, post
from tests.client.scripted import Peer
from tests.client.wire import DONE, FIXTURES, LAST_CHUNK, ROLE, STREAM_HEAD, word

kernel_stamps = pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what arrives")


@pytest.mark.timing
@kernel_stamps
def test_a_busy_event_loop_does_not_delay_the_stamp_of_the_first_token(serve: Serve, connect: Connect) -> None:
    loop_is_busy = threading.Event()
    truth: list[int] = []

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(STREAM_HEAD + ROLE)
        loop_is_busy.wait(5)
        truth.append(peer.send(word("a")))
        time.sleep(0.2)
        peer.send(word("b"), DONE, LAST_CHUNK)

    def block() -> int:
        """Keeps the loop from running until 50 ms after the token was sent; returns when it lets go, in ns."""
        gevent.sleep(0.05)
        loop_is_busy.set()
        while not truth or time.time_ns() < truth[0] + 50_000_000:
            pass
        return time.time_ns()

    blocker = gevent.spawn(block)
    reply = post(connect(serve(script).url))
    assert (reply.status, reply.clock, reply.stamp_error_ms) == ("ok", "kernel", 0.0)
    assert reply.t_first is not None
    # A stamp taken in this process could not be earlier than the end of the block.
    seen_in_user_space_ns = blocker.get() - truth[0]
    assert 0 <= reply.t_first - truth[0] < seen_in_user_space_ns / 4


@kernel_stamps
def test_stamps_and_send_times_are_of_one_clock_and_in_order(serve: Serve, connect: Connect) -> None:
    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(STREAM_HEAD, ROLE, word("a"), word("b"), word("c"), DONE + LAST_CHUNK, pause_s=0.01)

    before = time.time_ns()
    reply = post(connect(serve(script).url))
    after = time.time_ns()
    assert reply.clock == "kernel"
    assert reply.t_send is not None
    assert reply.t_first is not None
    assert reply.t_last is not None
    assert reply.t_end is not None
    assert before < reply.t_send < reply.t_first < reply.t_last < reply.t_end < after
    assert reply.itl_ms is not None
    assert len(reply.itl_ms) == 2
    assert sum(reply.itl_ms) == pytest.approx((reply.t_last - reply.t_first) / 1e6)


@pytest.mark.timing
@kernel_stamps
def test_packets_that_pile_up_under_one_stamp_are_counted_and_their_error_is_bounded(
    serve: Serve, connect: Connect
) -> None:
    truth: list[int] = []
    loop_is_busy, all_sent = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(STREAM_HEAD)
        loop_is_busy.wait(5)
        truth.append(peer.send(word("a")))
        time.sleep(0.02)
        peer.send(word("b"))
        all_sent.set()
        time.sleep(0.1)
        peer.send(DONE + LAST_CHUNK)

    def block() -> None:
        gevent.sleep(0.05)
        loop_is_busy.set()
        all_sent.wait(5)

    gevent.spawn(block)
    reply = post(connect(serve(script).url))
    assert (reply.status, reply.chunks, reply.coalesced) == ("ok", 2, 1)
    assert reply.itl_ms == (0.0,)
    assert reply.t_first is not None
    assert reply.stamp_error_ms is not None
    # Both have the stamp of "b", and "a" did come at least 20 ms earlier, within the bound.
    assert 20 <= (reply.t_first - truth[0]) / 1e6 <= reply.stamp_error_ms
    assert reply.last_stamp_error_ms == 0.0


def test_without_the_kernels_stamps_the_reply_says_so(
    serve: Serve, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.client.channel.enable_kernel_stamps", lambda sock: False)

    def script(peer: Peer) -> None:
        peer.read_request()
        peer.send(ANSWER)

    reply = post(connect(serve(script).url))
    assert (reply.status, reply.clock, reply.stamp_error_ms) == ("ok", "user", None)
    assert reply.ttft_ms is not None


PATCHED = """
import gevent.monkey
gevent.monkey.patch_all()
import sys, time, gevent
from pathlib import Path
from harness.client.timed import TimedClient
from harness.engines.reading import read_event
from harness.engines.target import Target
others = gevent.spawn(lambda: [gevent.sleep(0.001) for _ in range(1000)])
for url in sys.argv[1:3]:
    client = TimedClient(Target(url=url, ca_file=Path(sys.argv[3])), read_event)
    for _ in range(2):
        reply = client.post("/chat/completions", {}, {}, lambda reply: None)
        print(reply.status, reply.clock, reply.text, reply.error, not others.dead)
"""


def test_it_works_alike_in_a_process_that_gevent_has_patched(serve: Serve, tls_server: str) -> None:
    def script(peer: Peer) -> None:
        for _ in range(2):
            peer.read_request()
            peer.send(ANSWER)

    arguments = [serve(script).url, tls_server, str(FIXTURES / "tls" / "cert.pem")]
    done = subprocess.run(
        [sys.executable, "-c", PATCHED, *arguments], capture_output=True, text=True, timeout=60, env={**os.environ}
    )
    clock = "kernel" if sys.platform == "linux" else "user"
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"ok {clock} ab None True"] * 2 + ["ok user ab None True"] * 2
