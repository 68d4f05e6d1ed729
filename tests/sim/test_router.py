"""Several replicas behind the router, as kvswarm's client and collector see them."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urlsplit

import gevent
import pytest
import requests

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.collector import open_collector, value
from harness.embedded.server import RunningServer, running_server
from harness.engines.detect import connect
from harness.engines.target import resolve_target
from harness.sim.options import SimOptions
from harness.workload.words import CANDIDATES
from tests.embedded.test_server import wait_until_gone
from tests.sim.test_server import children

REPLICAS = 3


class Client:
    """Of all replicas together."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.target = resolve_target(server.target)
        self.engine = connect(self.target)
        self.timed = TimedClient(self.target, self.engine.read_event)

    @property
    def root(self) -> str:
        return self.server.url.removesuffix("/v1")

    def ask(self, words: str, tokens: int = 3, fault: str = "") -> Reply:
        return self.ask_with(self.timed, words, tokens, fault)

    def ask_with(self, client: TimedClient, words: str, tokens: int = 3, fault: str = "") -> Reply:
        payload = self.engine.chat_payload([{"role": "user", "content": words}], tokens)
        headers = {"X-Sim-Fault": fault} if fault else {}
        return client.post("/chat/completions", payload, headers, lambda reply: None)


@pytest.fixture(scope="module")
def round_robin() -> Iterator[Client]:
    with running_server(SimOptions(manner="vllm", replicas=REPLICAS)) as server:
        yield Client(server)


def words(number: int, count: int = 60) -> str:
    return " ".join(CANDIDATES[(number * 7 + place) % len(CANDIDATES)] for place in range(count))


def test_every_response_names_the_replica_and_requests_take_turns(round_robin: Client) -> None:
    replies = [round_robin.ask(words(number)) for number in range(2 * REPLICAS)]
    assert [reply.status for reply in replies] == ["ok"] * len(replies)
    assert Counter(reply.replica for reply in replies) == {"0": 2, "1": 2, "2": 2}
    assert [reply.connect_ms is None for reply in replies] == [False] + [True] * (len(replies) - 1)


def test_the_caches_are_separate(round_robin: Client) -> None:
    same = words(100, 200)
    replies = [round_robin.ask(same) for _ in range(2 * REPLICAS)]
    first, second = replies[:REPLICAS], replies[REPLICAS:]
    assert [reply.cached_tokens for reply in first] == [0] * REPLICAS
    assert all(reply.cached_tokens is not None and reply.cached_tokens > 150 for reply in second)
    assert [reply.replica for reply in first] == [reply.replica for reply in second]


def test_the_metrics_page_of_each_replica_is_reached_through_the_router(round_robin: Client) -> None:
    collector = open_collector(round_robin.target, lambda rows: None)
    metric = next(metric for metric in round_robin.engine.metrics if metric.meaning == "generated_tokens")
    assert collector.settle("before", round_robin.engine.is_idle)
    before = value(metric, collector.samples)
    for number in range(5):
        assert round_robin.ask(words(200 + number), tokens=4).output_tokens == 4
    assert collector.settle("after", round_robin.engine.is_idle)
    after = value(metric, collector.samples)
    assert before is not None
    assert after == before + 5 * 4
    pages = [
        requests.get(f"{round_robin.root}/replicas/{number}/metrics", timeout=10).text for number in range(REPLICAS)
    ]
    assert len(set(pages)) == REPLICAS


def test_paths_of_one_replica_go_there_and_others_are_not_found(round_robin: Client) -> None:
    for number in range(REPLICAS):
        response = requests.get(f"{round_robin.root}/replicas/{number}/v1/models", timeout=10)
        assert (response.status_code, response.headers["X-Replica"]) == (200, str(number))
    assert requests.get(f"{round_robin.root}/replicas/{REPLICAS}/v1/models", timeout=10).status_code == 404
    assert requests.get(f"{round_robin.root}/health", timeout=10).headers["X-Replica"] == "0"


def test_long_prompts_and_answers_pass_whole(round_robin: Client) -> None:
    reply = round_robin.ask(" ".join(CANDIDATES[place % 500] for place in range(20_000)), tokens=400)
    assert (reply.status, reply.output_tokens, reply.chunks) == ("ok", 400, 400)
    assert reply.prompt_tokens is not None
    assert reply.prompt_tokens > 20_000


def test_requests_may_come_byte_by_byte_or_two_at_once(round_robin: Client) -> None:
    parts = urlsplit(round_robin.server.url)
    request = b"GET /replicas/1/health HTTP/1.1\r\nhost: here\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port), timeout=10) as sock:
        for place in range(len(request)):
            sock.sendall(request[place : place + 1])
        assert sock.recv(65_536).startswith(b"HTTP/1.1 200 OK")
        sock.sendall(request * 2)
        received = b""
        while received.count(b"HTTP/1.1 200 OK") < 2:
            received += sock.recv(65_536)


def test_a_body_of_unknown_length_is_refused(round_robin: Client) -> None:
    response = requests.post(f"{round_robin.server.url}/completions", data=iter([b"{}"]), timeout=10)
    assert response.status_code == 411


def test_a_client_that_hangs_up_leaves_no_request_running(round_robin: Client) -> None:
    client = TimedClient(round_robin.target, round_robin.engine.read_event)
    asking = gevent.spawn(round_robin.ask_with, client, words(300), 20_000)
    gevent.sleep(0.3)
    client.cancel()
    assert asking.get(timeout=10).status == "cancelled"
    client.close()
    collector = open_collector(round_robin.target, lambda rows: None)
    assert collector.settle("after", round_robin.engine.is_idle)


def test_what_breaks_at_a_replica_breaks_at_the_client(round_robin: Client) -> None:
    reset = round_robin.ask(words(400), tokens=8, fault="reset:2")
    assert (reset.status, reset.error) == ("stream_error", "the connection broke: Connection reset by peer")
    assert (reset.chunks, reset.replica is not None) == (2, True)
    refused = round_robin.ask(words(400), fault="429")
    assert (refused.status, refused.http_status, refused.replica is not None) == ("http_error", 429, True)
    assert round_robin.ask(words(400)).status == "ok"


def test_a_conversation_stays_where_its_prefix_is() -> None:
    with running_server(SimOptions(manner="vllm", replicas=2, router="prefix")) as server:
        client = Client(server)
        seen = []
        for session in range(6):
            text = words(session * 20, 100)
            for turn in range(4):
                reply = client.ask(f"{text} {words(900 + turn, 30 * turn)}")
                seen.append((session, reply.replica, reply.cached_tokens))
        places = {session: {replica for one, replica, _ in seen if one == session} for session in range(6)}
        assert all(len(place) == 1 for place in places.values())
        assert set().union(*places.values()) == {"0", "1"}
        assert all((cached or 0) > 80 for number, (_, _, cached) in enumerate(seen) if number % 4)


def test_a_replica_that_dies_is_missed_and_the_others_go_on() -> None:
    with running_server(SimOptions(manner="vllm", replicas=2)) as server:
        client = Client(server)
        assert [client.ask(words(number)).replica for number in range(2)] == ["0", "1"]
        dead = min(children(server.pid))  # they were started in order
        os.kill(dead, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while http_status(client, "/replicas/0/health") != 502 and time.monotonic() < deadline:
            time.sleep(0.05)
        replies = [client.ask(words(number)) for number in range(4)]
        assert [(reply.http_status, reply.replica) for reply in replies] == [(502, None), (200, "1")] * 2


def test_all_processes_stop_with_the_server() -> None:
    with running_server(SimOptions(manner="vllm", replicas=2)) as server:
        pids = [server.pid, *children(server.pid)]
        assert len(pids) == 3
    for pid in pids:
        wait_until_gone(pid)


def http_status(client: Client, path: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(client.root).netloc, timeout=10)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status
