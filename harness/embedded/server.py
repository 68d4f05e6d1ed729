"""The embedded server in a process of its own, for as long as a block of code runs."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from harness.command import kvswarm
from harness.embedded.options import API_KEY_VARIABLE, LlamaCppOptions
from harness.errors import InputError, KvswarmError

__all__ = ["LlamaCppOptions", "RunningServer", "running_server", "serve"]

READY = "llama.cpp's server listens on "
"""What the line begins with by which the server's process tells its URL."""
STOP_S = 5.0
"""How long the server may take to stop before it is killed."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    url: str
    """With the /v1 at its end."""
    log: Path
    """What the server writes; with `LlamaCppOptions.verbose` some lines for each request."""
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid


def serve(options: LlamaCppOptions) -> int:
    """Run the server in the foreground, say where it is and what to type next; 0 when Ctrl-C or SIGTERM stops it.

    Raises as `running_server` does, and KvswarmError if the server ends by itself.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores SIGINT unless told otherwise
        signal.signal(number, signal.default_int_handler)
    try:
        with running_server(options) as server:
            size = f"{options.slots} slots, {options.context_tokens} tokens of KV cache"
            print(f"{READY}{server.url} (model {options.alias}, {size}, log {server.log})")
            print(f"Next, in another terminal: {kvswarm()} run agent-loop --target {server.url}")
            print("Ctrl-C stops the server.", flush=True)
            code = server.process.wait()
            raise KvswarmError(f"llama.cpp's server ended by itself with code {code}; its log ends: {tail(server.log)}")
    except KeyboardInterrupt:
        return 0


@contextmanager
def running_server(
    options: LlamaCppOptions, *, log: Path | None = None, deadline_s: float = 60.0
) -> Iterator[RunningServer]:
    """Start the server, wait until it is healthy, stop it at the end of the block.

    `log` stays if it is given. The server also stops when this process dies, however it dies.
    Raises InputError if the options cannot be used, KvswarmError if the server ends early or is not up in time.
    """
    options.check()
    with tempfile.TemporaryDirectory(prefix="kvswarm-") as folder:
        log = log or Path(folder) / "llama-cpp.log"
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
            yield RunningServer(url=ready_url(process, log, deadline_s), log=log, process=process)
        finally:
            stop(process)


def ready_url(process: subprocess.Popen[bytes], log: Path, deadline_s: float) -> str:
    """Wait until the server has told its URL and answers GET /health there."""
    deadline = time.monotonic() + deadline_s
    while time.monotonic() < deadline:
        code = process.poll()
        if code == InputError.exit_code:
            raise InputError(tail(log, lines=1))
        if code is not None:
            raise KvswarmError(f"llama.cpp's server ended with code {code} before it was up; its log ends: {tail(log)}")
        told = re.search(re.escape(READY) + r"(\S+)\n", log.read_text(errors="replace"))
        if told and healthy(told[1]):
            return told[1]
        time.sleep(0.02)
    raise KvswarmError(f"llama.cpp's server was not up within {deadline_s:g} s; its log ends: {tail(log)}")


def healthy(url: str) -> bool:
    """Over a plain connection: a proxy of the environment has no part in this."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of the log as one."""
    return " / ".join(log.read_text(errors="replace").splitlines()[-lines:])
