"""The process of one simulated engine: uvicorn on uvloop and httptools."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from harness.sim.faults import Fault, parse
from harness.sim.faulty import GENERATING, Faulty
from harness.sim.options import MannerName, SimOptions
from harness.sim.process_options import REPLICA_HEADER
from harness.sim.web import Call, Manner, application

SERVERS: dict[MannerName, str] = {
    "vllm": "uvicorn",
    "sglang": "uvicorn",
    "llama-cpp": "llama.cpp",
    "mlx-lm": "BaseHTTP/0.6 Python/3.11.7",
}
"""What the header Server says."""
KEEP_ALIVE_S = 3600
"""How long an idle connection stays open: longer than any client thinks, so that none breaks between two turns."""
STOP_S = 1
"""How long requests under way may go on when the process is told to stop."""


class Connection(HttpToolsProtocol):
    """Shows itself to the application, as faults are in need of its transport and of the headers of each response."""

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        extensions: Any = {"connection": self}
        self.scope["extensions"] = extensions  # the application has the same mapping, and runs later


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections at once; port 0: any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def ready_line(title: str, listener: socket.socket) -> str:
    """What a process says as soon as it listens."""
    host, port = listener.getsockname()[:2]
    return f"{title} listens on http://{f'[{host}]' if ':' in host else host}:{port}/v1"


def run(options: SimOptions) -> None:
    """Serve until SIGTERM or SIGINT. Prints `ready_line` when requests are taken."""
    faults = [parse(text) for text in options.faults]
    delays = [fault.value for fault in faults if fault.kind == "unreachable"]
    time.sleep(sum(delays))
    manner = _manner(options)
    listener = listen(options.host, options.port)
    options = replace(options, port=listener.getsockname()[1])
    faulty = Faulty(application(manner, _log(options.request_log)), faults, options.seed, lambda: start_again(options))
    headers = [] if options.replica is None else [(REPLICA_HEADER.lower(), str(options.replica))]
    config = uvicorn.Config(
        faulty,
        http=Connection,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=options.manner != "llama-cpp",
        headers=[("server", SERVERS[options.manner]), *headers],
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    # What is there now stays, so the collector need not look at it again and again while streams run.
    gc.collect()
    gc.freeze()
    print(ready_line(options.title, listener), flush=True)
    server = uvicorn.Server(config)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(server, listener, faults, options))


def _log(path: str | None) -> Callable[[Call], None] | None:
    if path is None:
        return None
    file = Path(path).open("a", buffering=1)  # noqa: SIM115 (open as long as the process lives)

    def write(call: Call) -> None:
        if call.path.endswith(GENERATING):
            file.write(call.headers.get("x-request-id", "") + "\n")

    return write


def _manner(options: SimOptions) -> Manner:
    """The engine that the options ask for; only its own modules are loaded."""
    match options.manner:
        case "vllm":
            from harness.sim.manners.vllm import Vllm

            return Vllm(options)
        case "sglang":
            from harness.sim.manners.sglang import Sglang

            return Sglang(options)
        case "llama-cpp":
            from harness.sim.manners.llama_cpp import LlamaCpp

            return LlamaCpp(options)
        case "mlx-lm":
            from harness.sim.manners.mlx_lm import MlxLm

            return MlxLm(options)


async def _serve(server: uvicorn.Server, listener: socket.socket, faults: Sequence[Fault], options: SimOptions) -> None:
    for fault in faults:
        if fault.kind == "restart":
            asyncio.get_running_loop().call_later(fault.value, start_again, options)
    await server.serve(sockets=[listener])


def start_again(options: SimOptions) -> None:
    """A new process in the place of this one, which loses all connections; it will not restart by itself."""
    kept = tuple(text for text in options.faults if parse(text).kind != "restart")
    os.execv(sys.executable, [sys.executable, *replace(options, faults=kept).arguments(options.port)])
