"""Servers with children, in a process group that never outlives its user."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from harness.embedded import process as module
from harness.embedded.process import free_port, process_group, wait_until_healthy
from harness.errors import KvswarmError
from tests.embedded.test_server import wait_until_gone

ROOT = Path(__file__).parents[2]

FAMILY = """
    import subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import signal, time\\n{child}\\ntime.sleep(600)"])
    print(child.pid, flush=True)
    time.sleep(600)
"""
"""A server with a child."""


def family(child: str = "") -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(FAMILY).replace("{child}", child)]


def child_of(log: Path) -> int:
    deadline = time.monotonic() + 20
    while not log.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(log.read_text().split()[0])


def test_the_end_of_the_block_is_the_end_of_all_its_processes(tmp_path: Path) -> None:
    with process_group(family(), {}, tmp_path / "log") as process:
        child = child_of(tmp_path / "log")
        os.kill(child, 0)
    assert process.returncode == -signal.SIGTERM
    wait_until_gone(child)


def test_a_child_that_takes_no_notice_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STOP_S", 1.0)
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True)"
    with process_group(family(ignore), {}, tmp_path / "log"):
        child = child_of(tmp_path / "log")
    wait_until_gone(child)


def test_everything_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = (
        "import pathlib, sys, time\n"
        "from harness.embedded.process import process_group\n"
        "with process_group(sys.argv[2:], {}, pathlib.Path(sys.argv[1])) as process:\n"
        "    print(process.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", program, str(log), *family()]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        child = child_of(log)
        parent.kill()
    wait_until_gone(server)
    wait_until_gone(child)


def test_variables_are_added_to_the_environment(tmp_path: Path) -> None:
    show = "import os; print(os.environ['KVSWARM_TEST'], 'PATH' in os.environ)"
    with process_group([sys.executable, "-c", show], {"KVSWARM_TEST": "here"}, tmp_path / "log") as process:
        process.wait(20)
    assert (tmp_path / "log").read_text() == "here True\n"


def test_a_server_that_ends_or_is_late_is_told_with_its_last_words(tmp_path: Path) -> None:
    log, url = tmp_path / "log", "http://127.0.0.1:9/v1"
    with (
        process_group([sys.executable, "-c", "print('no model'); raise SystemExit(3)"], {}, log) as process,
        pytest.raises(KvswarmError, match="The toy ended with code 3 before it was up; its log ends: no model"),
    ):
        wait_until_healthy("The toy", url, process, log, 30)
    with process_group(family(), {}, log) as process:
        child = child_of(log)
        with pytest.raises(KvswarmError, match=rf"The toy was not up within 0\.5 s; its log ends: {child}"):
            wait_until_healthy("The toy", url, process, log, 0.5)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_free_port_is_kept_for_the_server_that_was_meant(host: str) -> None:
    """Else two that start at the same time could be given one port, and whoever comes second would load the other's."""
    port, family = free_port(host), socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as another, pytest.raises(OSError, match="in use"):
        another.bind((host, port))
    with socket.create_server((host, port), family=family) as server:
        assert server.getsockname()[1] == port
