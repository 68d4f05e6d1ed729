"""How many events a second can one core of a simulated engine send? `make bench` runs it.

Starts a simulated engine on one core, with a clock so fast that no step has to be waited for, and 256 streams over raw
sockets on another one. Prints the events that arrived in each second, and those for each second of CPU time of the
server, which other processes on its core do not change.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson

from harness.embedded.server import RunningServer, running_server
from harness.sim.command_line import PORTS
from harness.sim.options import SimOptions
from harness.workload.words import CANDIDATES

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Count:
    events: int
    wall_s: float
    cpu_s: float
    """Of the server's process."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manners", default=",".join(PORTS))
    parser.add_argument("--streams", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=400, help="of each answer")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[0]})
    for manner in asked.manners.split(","):
        options = SimOptions(
            manner=manner, time_scale=1e6, slots=asked.streams, kv_tokens=asked.streams * 2048, context_tokens=2048
        )
        with running_server(options) as server:
            os.sched_setaffinity(server.pid, {cores[-1]})
            model = "default_model" if manner == "mlx-lm" else options.alias
            count = measure(server, model, asked.streams, asked.tokens)
        print(
            f"{manner}: {asked.streams} streams, {count.events:,} events in {count.wall_s:.1f} s: "
            f"{count.events / count.wall_s:,.0f} events/s, {count.events / count.cpu_s:,.0f} for each second of CPU "
            f"time ({count.cpu_s / count.events * 1e6:.0f} us an event)"
        )
    return 0


def measure(server: RunningServer, model: str, streams: int, tokens: int) -> Count:
    """From the first event of any stream to the end of all."""
    epoll, sockets = select.epoll(), dict[int, socket.socket]()
    for number in range(streams):
        sock = socket.create_connection((urlsplit(server.url).hostname, urlsplit(server.url).port))
        sock.sendall(request(model, number, tokens))
        sock.setblocking(False)
        epoll.register(sock.fileno(), select.EPOLLIN)
        sockets[sock.fileno()] = sock
    events, began_s, began_cpu_s = 0, 0.0, 0.0
    while sockets:
        for number, _ in epoll.poll():
            data = sockets[number].recv(1 << 20)
            if not began_s:
                began_s, began_cpu_s = time.perf_counter(), cpu_s(server.pid)
            events += data.count(b"data: ")
            if not data or data.endswith(b"0\r\n\r\n"):
                sockets.pop(number).close()
    return Count(events, time.perf_counter() - began_s, cpu_s(server.pid) - began_cpu_s)


def request(model: str, number: int, tokens: int) -> bytes:
    """A chat of its own for each stream."""
    messages = [{"role": "user", "content": " ".join(CANDIDATES[number : number + 20])}]
    body = orjson.dumps(
        {
            "model": model,
            "messages": messages,
            "max_tokens": tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "ignore_eos": True,
        }
    )
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def cpu_s(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / TICKS_A_SECOND


if __name__ == "__main__":
    sys.exit(main())
