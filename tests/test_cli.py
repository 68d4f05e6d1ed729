"""The command line: help everywhere, one sentence and exit code 2 for wrong input."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness import __version__
from harness.cli import app


def kvswarm(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli", *words], capture_output=True, text=True, timeout=60, cwd=cwd
    )


def test_version() -> None:
    assert kvswarm("--version").stdout.strip() == __version__


COMMANDS = """
run / sweep / find / cost-of / web / master / worker / demo / demo-engines / demo-sim / report / repair / query
compare / beside / export / export openmetrics / export grafana
target / target check / trace / trace reuse
trace export / lint / prove / evict / isolate / persist / kv-size / serve / serve llama-cpp / serve vllm / serve sglang
serve mlx-lm / serve sim
"""


@pytest.mark.parametrize(
    "command", [words.split() for words in COMMANDS.replace("\n", " / ").split("/") if words.split()]
)
def test_every_command_has_help(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--help"])
    assert done.exit_code == 0
    assert f"Usage: root {' '.join(command)} " in done.stdout


def test_report_of_a_run_that_is_not_there() -> None:
    done = kvswarm("report", "no-such-run")
    assert done.returncode == 2
    assert done.stderr.startswith("kvswarm: ")
    assert "no-such-run" in done.stderr
    assert "Traceback" not in done.stderr


def test_serve_on_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = kvswarm("serve", "llama-cpp", "--port", port)
    assert done.returncode == 2
    assert port in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_run_against_nothing() -> None:
    done = kvswarm("run", "agent-loop", "--target", "http://127.0.0.1:1/v1", "--workers", "0")
    assert done.returncode == 2
    assert "nothing listens at 127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
