"""An engine's server for as long as a block of code runs, or in the foreground."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.command import kvswarm
from harness.embedded.engine_options import EngineOptions
from harness.embedded.options import API_KEY_VARIABLE, LlamaCppOptions
from harness.embedded.process import (
    RunningServer,
    free_port,
    healthy,
    process_group,
    tail,
    wait_until_healthy,
)
from harness.embedded.server_options import ServerOptions
from harness.errors import InputError, KvswarmError

__all__ = ["LlamaCppOptions", "RunningServer", "running_server", "serve"]

READY = "llama.cpp's server listens on "
"""What the line begins with by which the process of llama.cpp's server tells its URL."""
STOP_S = 5.0
"""How long llama.cpp's server may take to stop before it is killed."""


def serve(options: LlamaCppOptions | ServerOptions) -> int:
    """Run the server in the foreground, say where it is and what to type next; 0 when Ctrl-C or SIGTERM stops it.

    Raises as `running_server` does, and KvswarmError if the server ends by itself.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores SIGINT unless told otherwise
        signal.signal(number, signal.default_int_handler)
    try:
        if isinstance(options, EngineOptions):
            print(f"{options.title} is starting, which can take a minute.", flush=True)
        with running_server(options) as server:
            about = f"model {options.alias}, {options.size()}, log {server.log}"
            print(f"{options.title} listens on {server.url} ({about})")
            print(f"Next, in another terminal: {kvswarm()} run agent-loop --target {server.target}")
            print("Ctrl-C stops the server.", flush=True)
            code = server.process.wait()
            raise KvswarmError(f"{options.title} ended by itself with code {code}; its log ends: {tail(server.log)}")
    except KeyboardInterrupt:
        return 0


@contextmanager
def running_server(
    options: LlamaCppOptions | ServerOptions, *, log: Path | None = None, deadline_s: float | None = None
) -> Iterator[RunningServer]:
    """Start the server, wait until it is healthy, stop it and all its processes at the end of the block.

    An engine that has an environment of its own is installed first if need be. `log` stays if it is given.
    The server also stops when this process dies, however it dies. `deadline_s`: how long it may take to be healthy.
    Raises InputError if the options cannot be used, KvswarmError if the engine cannot be installed, or the server ends
    early or is not up in time.
    """
    options.check()
    deadline_s = options.deadline_s if deadline_s is None else deadline_s
    with tempfile.TemporaryDirectory(prefix="kvswarm-") as name:
        folder = Path(name)
        log = log or folder / "server.log"
        if isinstance(options, LlamaCppOptions):
            with _llama_cpp(options, log) as process:
                url = _ready_url(process, log, deadline_s)
                yield RunningServer(url=url, target=url, log=log, process=process)
            return
        python = options.python()
        port = options.port or free_port(options.host)
        command = [str(python), *options.arguments(port)]
        with process_group(command, options.environment(folder), log) as process:
            host = f"[{options.host}]" if ":" in options.host else options.host
            url = f"http://{host}:{port}/v1"
            wait_until_healthy(options.title, url, process, log, deadline_s)
            yield RunningServer(url=url, target=options.target(url, folder), log=log, process=process)


@contextmanager
def _llama_cpp(options: LlamaCppOptions, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.embedded", *options.arguments()],
            stdin=subprocess.PIPE,  # ends with this process, and then the server stops
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=os.environ | {API_KEY_VARIABLE: options.api_key} if options.api_key else None,
            start_new_session=True,  # Ctrl-C in a terminal is for this process, which then stops the server
        )
    try:
        yield process
    finally:
        _stop(process)


def _ready_url(process: subprocess.Popen[bytes], log: Path, deadline_s: float) -> str:
    """Wait until llama.cpp's server has told its URL and answers GET /health there."""
    title, deadline = LlamaCppOptions.title, time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        code = process.poll()
        if code == InputError.exit_code:
            raise InputError(tail(log, lines=1))
        if code is not None:
            raise KvswarmError(f"{title} ended with code {code} before it was up; its log ends: {tail(log)}")
        told = re.search(re.escape(READY) + r"(\S+)\n", log.read_text(errors="replace"))
        if told and healthy(told[1]):
            return told[1]
        time.sleep(0.02)
    raise KvswarmError(f"{title} was not up within {deadline_s:g} s; its log ends: {tail(log)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
