"""A streaming server that knows when it wrote what: the truth that the client's TTFT is held against.

    python tests/bench/metronome.py --port 9100 --log FILE

OpenAI's chat endpoint, as little of it as a run needs. Each answer's first token is due TTFT after the request's last
byte arrived (kernel stamp), the others follow on an absolute schedule, one HTTP chunk and one send() each. One thread,
one epoll loop that spins for the last millisecond before a deadline: give it a core of its own. On SIGTERM it writes
one JSON line a request: {"id": X-Request-Id, "arrived_ns", "first_ns", "last_ns"}, times in ns since the epoch.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import json
import re
import select
import signal
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

SO_TIMESTAMPNS = 35
TIMESPEC = struct.Struct("qq")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
REQUEST_ID = re.compile(rb"\r\nx-request-id: *([^\r]+)", re.I)
SPIN_NS = 1_000_000


def event(choice: dict[str, Any] | None, usage: dict[str, Any] | None = None) -> bytes:
    """One SSE event of the usual size as one HTTP chunk."""
    body = {"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1767225600}
    data = {**body, "model": "metronome", "choices": [choice] if choice else [], **({"usage": usage} if usage else {})}
    return chunk(b"data: " + json.dumps(data).encode() + b"\n\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def plain(data: Any) -> bytes:
    body = json.dumps(data).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


ROLE = event({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None})
TOKEN = event({"index": 0, "delta": {"content": " word"}, "logprobs": None, "finish_reason": None})
LAST = event({"index": 0, "delta": {"content": " word"}, "logprobs": None, "finish_reason": "length"})


@dataclass(slots=True)
class Connection:
    sock: socket.socket
    received: bytes = b""
    tokens_left: int = 0
    tail: bytes = b""
    record: dict[str, Any] = field(default_factory=dict)


class Metronome:
    """All times are CLOCK_REALTIME ns."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.itl_ns = int(options.itl_ms * 1e6)
        self.connections: dict[int, Connection] = {}
        self.due: list[tuple[int, int, Connection]] = []
        self.served = 0
        self.records: list[dict[str, Any]] = []
        self.running = True
        self.listener = socket.create_server((options.host, options.port), backlog=4096)
        self.listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)  # accepted sockets inherit it
        self.listener.setblocking(False)
        self.epoll = select.epoll()
        self.epoll.register(self.listener.fileno(), select.EPOLLIN)

    def loop(self) -> None:
        while self.running:
            now = time.time_ns()
            for _ in range(16):  # then look at the sockets again
                if not self.due or self.due[0][0] > now:
                    break
                self.tick()
                now = time.time_ns()
            wait_ns = self.due[0][0] - now - SPIN_NS if self.due else 200_000_000
            for fileno, _ in self.epoll.poll(max(0, wait_ns) / 1e9, 16):
                self.accept() if fileno == self.listener.fileno() else self.read(self.connections[fileno])

    def accept(self) -> None:
        for _ in range(8):
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections[sock.fileno()] = Connection(sock)
            self.epoll.register(sock.fileno(), select.EPOLLIN)

    def read(self, connection: Connection) -> None:
        try:
            data, ancillary, _, _ = connection.sock.recvmsg(262144, 64)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.epoll.unregister(connection.sock.fileno())
            del self.connections[connection.sock.fileno()]
            connection.sock.close()
            connection.tokens_left = -1  # what is still due is skipped
            return
        arrived = time.time_ns()
        for _, kind, stamp in ancillary:
            if kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = TIMESPEC.unpack(stamp)
                arrived = seconds * 1_000_000_000 + nanoseconds
        connection.received += data
        head, found, body = connection.received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if found and len(body) >= (int(length[1]) if length else 0):
            connection.received = b""
            self.answer(connection, head, body, arrived)

    def answer(self, connection: Connection, head: bytes, body: bytes, arrived: int) -> None:
        if head.startswith(b"GET"):
            listing = {"object": "list", "data": [{"id": "metronome", "object": "model", "owned_by": "kvswarm"}]}
            connection.sock.send(plain(listing))
            return
        asked = json.loads(body)
        prompt = sum(len(message["content"].split()) + 3 for message in asked["messages"])
        if not asked.get("stream"):
            usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
            message = {"role": "assistant", "content": " word"}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            connection.sock.send(plain({"choices": [choice], "usage": usage}))
            return
        tokens = self.options.tokens
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}
        connection.tail = event(None, usage) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
        connection.tokens_left = tokens
        told = REQUEST_ID.search(head)
        connection.record = {"id": told[1].decode() if told else "", "arrived_ns": arrived}
        connection.sock.send(HEAD)
        # A fixed low-discrepancy sequence spreads the first tokens, so that streams do not march in step.
        spread = 1 + self.options.ttft_spread * (2 * (self.served * 0.6180339887 % 1) - 1)
        self.served += 1
        heapq.heappush(self.due, (arrived + int(self.options.ttft_ms * spread * 1e6), self.served, connection))

    def tick(self) -> None:
        """Send the token that is due first."""
        due, order, connection = self.due[0]
        if connection.tokens_left <= 0:
            heapq.heappop(self.due)
            return
        record, sock = connection.record, connection.sock
        if "first_ns" not in record:
            sock.send(ROLE)
            record["first_ns"] = time.time_ns()
        connection.tokens_left -= 1
        if connection.tokens_left:
            heapq.heapreplace(self.due, (due + self.itl_ns, order, connection))
            sock.send(TOKEN)
            return
        heapq.heappop(self.due)
        record["last_ns"] = time.time_ns()
        sock.send(LAST)
        self.records.append(record)
        sock.send(connection.tail)

    def stop(self, *_: object) -> None:
        self.running = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--log", required=True)
    parser.add_argument("--ttft-ms", type=float, default=200)
    parser.add_argument("--ttft-spread", type=float, default=0.5, help="0.5: from half of it to one and a half")
    parser.add_argument("--itl-ms", type=float, default=25)
    parser.add_argument("--tokens", type=int, default=128)
    server = Metronome(parser.parse_args())
    signal.signal(signal.SIGTERM, server.stop)
    gc.collect()
    gc.freeze()
    gc.disable()
    server.loop()
    with open(server.options.log, "w") as log:
        log.writelines(json.dumps(record) + "\n" for record in server.records)


if __name__ == "__main__":
    main()
