"""Real Locust processes against a real llama.cpp server, or against a slow server that counts what it was asked."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from harness.embedded.process import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

AGENT = """
name: small-agent
kind: agent-loop
replies: live
system_tokens: 64
tools_tokens: 128
task_tokens: 256
steps: 5
observation_tokens: 24
output_tokens: 6
"""

CHAT = """
name: small-chat
kind: multi-round
system_tokens: 48
preamble_tokens: 200
rounds: 3
user_tokens: 16
output_tokens: 6
think_time_s: 0.05
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], Path]:
    """Write a scenario and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / f"scenario-{len(list(tmp_path.glob('scenario-*')))}.yaml"
        path.write_text(text)
        return path

    return write


@dataclass
class Locust:
    """A Locust process in a process group of its own, as a terminal would start it."""

    process: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)

    def wait(self, timeout: float = 120) -> tuple[int, str]:
        """(exit code, everything that it printed)."""
        try:
            text, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise
        return self.process.returncode, text

    def stop_after(self, results: Path, url: str, answers: int, output_tokens: int = 6) -> tuple[int, str]:
        """End the run when the llama.cpp server at `url` has given so many answers under load; then as `wait`.

        How long that takes depends on the machine; what is shown then does not.
        """
        wait_until(lambda: any(results.glob("*/requests/part-master-0-*")) or self.process.poll() is not None)
        before = generated_tokens(url)
        enough = before + answers * output_tokens
        wait_until(lambda: generated_tokens(url) >= enough or self.process.poll() is not None)
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]


@pytest.fixture
def start_locust(tmp_path: Path) -> Iterator[Callable[..., Locust]]:
    """Start `locust -f <locustfile> ...` with results below tmp_path/results."""
    started: list[Locust] = []

    def start(locustfile: str, *words: object, workers: int = 0, cwd: Path = ROOT) -> Locust:
        command = [sys.executable, "-m", "locust", "-f", str(ROOT / "locustfiles" / locustfile)]
        command += ["--results", str(tmp_path / "results"), *map(str, words)]
        if workers:
            port = str(free_port())
            command += ["--processes", str(workers), "--master-bind-host", "127.0.0.1"]
            command += ["--master-bind-port", port, "--master-port", port]
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        started.append(Locust(process))
        return started[-1]

    yield start
    for locust in started:
        if locust.process.poll() is None:
            os.killpg(locust.process.pid, signal.SIGKILL)
            print(locust.process.communicate()[0])  # pytest shows it if the test failed


class SlowServer(ThreadingHTTPServer):
    """Answers every measured request after `delay_s`, and remembers the id of each that reached it."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, delay_s: float, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), SlowHandler)
        self.delay_s = delay_s
        self.delays_the_check = False
        self.asked: list[str] = []
        self.url = f"http://{host}:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that closes its connection is nothing to report."""


class SlowHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowServer

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.reply({"object": "list", "data": [{"id": "slow", "object": "model"}]})
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = sum(len(message["content"].split()) + 3 for message in asked["messages"])
        usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": "word"}
            self.reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
            return
        # The check's requests are named, and sessions of the warm-up have negative numbers.
        if not re.search("-check-|--", self.headers["X-Request-Id"]):
            self.server.asked.append(self.headers["X-Request-Id"])
            time.sleep(self.server.delay_s)
        elif self.server.delays_the_check:
            time.sleep(self.server.delay_s)
        delta = {"choices": [{"index": 0, "delta": {"content": "word"}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(delta)}\n\ndata: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def reply(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def slow_server() -> Iterator[Callable[[float], SlowServer]]:
    servers: list[SlowServer] = []

    def start(delay_s: float) -> SlowServer:
        server = SlowServer(delay_s)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def computed_tokens(url: str) -> float:
    """Prompt tokens that the llama.cpp server at `url` has computed so far."""
    return counter(url, "llamacpp:prompt_tokens_total")


def generated_tokens(url: str) -> float:
    return counter(url, "llamacpp:tokens_predicted_total")


def counter(url: str, name: str) -> float:
    page = requests.get(url.replace("/v1", "/metrics"), timeout=30).text
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(f"{name} "))
