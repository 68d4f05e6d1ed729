"""A server as a process group of its own, for as long as a block of code runs."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from harness.embedded.guard import ALL_IS_WELL
from harness.errors import KvswarmError

STOP_S = 15.0
"""How long a server and its children may take to stop before they are killed."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    url: str
    """With the /v1 at its end."""
    target: str
    """What kvswarm takes as a target: the URL, or the path of a target file that is there as long as the server."""
    log: Path
    """What the server writes."""
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid


@contextmanager
def process_group(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` with `environment` added to this process's, all that it writes going to `log`.

    At the end of the block, and also when this process dies, it is stopped with everything that it started.
    """
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,  # Ctrl-C in a terminal is for this process, which then stops the server
        )
    guard = subprocess.Popen(
        [sys.executable, "-m", "harness.embedded.guard", str(process.pid)],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    try:
        yield process
    finally:
        stop_group(process)
        guard.communicate(ALL_IS_WELL)


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """Ask the leader of a process group to stop, then what it left behind, and kill what does not within `STOP_S`."""
    deadline = time.monotonic() + STOP_S
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):  # all of it is gone
        os.killpg(process.pid, signal.SIGTERM)
        while time.monotonic() < deadline:
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until_healthy(title: str, url: str, process: subprocess.Popen[bytes], log: Path, deadline_s: float) -> None:
    """Wait until GET /health at the server of `url` answers 200.

    Raises KvswarmError if the process ends before, or if it takes longer than `deadline_s`.
    """
    deadline = time.monotonic() + deadline_s
    while not healthy(url):
        code = process.poll()
        if code is not None:
            raise KvswarmError(f"{title} ended with code {code} before it was up; its log ends: {tail(log)}")
        if time.monotonic() > deadline:
            raise KvswarmError(f"{title} was not up within {deadline_s:g} s; its log ends: {tail(log)}")
        time.sleep(0.1)


def healthy(url: str) -> bool:
    """Over a plain connection: a proxy of the environment has no part in this."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def tail(log: Path, lines: int = 5) -> str:
    """The last lines of the log as one."""
    return " / ".join(log.read_text(errors="replace").splitlines()[-lines:])


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody listens on, and that for a minute the system gives to nobody who does not name it.

    A connection that was closed at the port's end keeps it so (TIME_WAIT). Whoever names it must set SO_REUSEADDR, as
    servers do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener, socket.socket(family) as caller:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, 0))
        listener.listen(1)
        caller.connect(listener.getsockname())
        listener.accept()[0].close()
        port: int = listener.getsockname()[1]
        return port
