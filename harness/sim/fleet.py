"""Several replicas of one engine, each a process of its own, and the router before them in this one."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import uvloop

from harness.embedded.process import free_port, healthy
from harness.errors import KvswarmError
from harness.sim.options import SimOptions
from harness.sim.process_options import TITLES
from harness.sim.router import Router
from harness.sim.routing import policy
from harness.sim.server import listen, ready_line

REPLICA_HOST = "127.0.0.1"
STOP_S = 5.0
"""How long a replica may take to stop before it is killed."""


def run(options: SimOptions) -> None:
    """Serve until SIGTERM or SIGINT. Raises KvswarmError if a replica does not come up."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    replicas: list[subprocess.Popen[bytes]] = []
    try:
        ports = _free_ports(options.replicas)
        for number, port in enumerate(ports):
            one = replace(options, host=REPLICA_HOST, replicas=1, replica=number)
            replicas.append(subprocess.Popen([str(one.python()), *one.arguments(port)], stdin=subprocess.DEVNULL))
        _wait(replicas, ports, options)
        listener = listen(options.host, options.port)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_route(options, ports, listener))
    except KeyboardInterrupt:
        pass
    finally:
        _stop(replicas)


def _free_ports(count: int) -> list[int]:
    """Different ones."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port(REPLICA_HOST))
    return sorted(ports)


def _wait(replicas: Sequence[subprocess.Popen[bytes]], ports: Sequence[int], options: SimOptions) -> None:
    deadline = time.monotonic() + options.deadline_s
    for number, (process, port) in enumerate(zip(replicas, ports, strict=True)):
        while not healthy(f"http://{REPLICA_HOST}:{port}"):
            code = process.poll()
            if code is not None:
                raise KvswarmError(f"Replica {number} ended with code {code} before it was up.")
            if time.monotonic() > deadline:
                raise KvswarmError(f"Replica {number} was not up within {options.deadline_s:g} s.")
            time.sleep(0.05)


async def _route(options: SimOptions, ports: Sequence[int], listener: socket.socket) -> None:
    router = Router([(REPLICA_HOST, port) for port in ports], policy(options.router, options.replicas))
    server = await asyncio.get_running_loop().create_server(router.protocol, sock=listener)
    title = f"A {options.router} router before {options.replicas} replicas of a simulated {TITLES[options.manner]}"
    print(ready_line(title, listener), flush=True)
    for number, port in enumerate(ports):
        print(f"Replica {number}: http://{REPLICA_HOST}:{port}/v1", flush=True)
    await server.serve_forever()


def _stop(replicas: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + STOP_S
    for process in replicas:
        process.terminate()
    for process in replicas:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        process.kill()
        process.wait()
