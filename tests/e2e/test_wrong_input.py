"""Wrong input: one clear sentence and exit code 2, before anything is sent."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.embedded.process import free_port
from harness.embedded.server import RunningServer
from tests.e2e.conftest import CHAT, Locust, SlowServer

Words = list[object]


@pytest.fixture
def refused(start_locust: Callable[..., Locust]) -> Callable[..., str]:
    """Run headless, expect exit code 2, return the one line that kvswarm says."""

    def run(*words: object, workers: int = 0) -> str:
        code, output = start_locust(
            "multi_round.py", "--headless", "--users", 1, "--run-time", "3s", *words, workers=workers
        ).wait()
        assert code == 2, output
        said = [line for line in output.splitlines() if line.startswith("kvswarm:")]
        assert len(said) == 1, output
        assert "Traceback" not in output
        return said[0]

    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_unknown_scenario_key(
    workers: int, refused: Callable[..., str], scenario: Callable[[str], Path], slow_server: Callable[..., SlowServer]
) -> None:
    path = scenario(CHAT + "roundz: 3\n")
    said = refused("--scenario", path, "--target", slow_server(0).url, workers=workers)
    assert str(path) in said
    assert "line 10" in said
    assert "roundz" in said
    assert "rounds" in said


def test_missing_file(refused: Callable[..., str]) -> None:
    said = refused("--scenario", "no/such.yaml", "--target", "http://127.0.0.1:9/v1")
    assert "no/such.yaml" in said
    assert "agent-loop" in said


def test_no_target(refused: Callable[..., str]) -> None:
    assert "--target http" in refused()


def test_unreachable_target(refused: Callable[..., str]) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    said = refused("--target", url)
    assert url in said
    assert "nothing listens" in said


def test_target_that_is_no_openai_server(refused: Callable[..., str], slow_server: Callable[..., SlowServer]) -> None:
    said = refused("--target", slow_server(0).url.replace("/v1", "/v2"))
    assert "no OpenAI-compatible server" in said


def test_model_that_the_server_does_not_have(refused: Callable[..., str], llama_cpp: RunningServer) -> None:
    said = refused("--target", llama_cpp.url, "--model", "gpt-17")
    assert "gpt-17" in said
    assert "tiny" in said


def test_context_too_small(
    refused: Callable[..., str], llama_cpp: RunningServer, scenario: Callable[[str], Path]
) -> None:
    path = scenario(CHAT.replace("preamble_tokens: 200", "preamble_tokens: 5000"))
    said = refused("--target", llama_cpp.url, "--scenario", path)
    assert "context" in said
    assert "4096" in said


def test_unwritable_results_directory(
    refused: Callable[..., str], slow_server: Callable[..., SlowServer], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")  # root may write everywhere, but not below a file
    said = refused("--target", slow_server(0).url, "--results", tmp_path / "file")
    assert str(tmp_path / "file") in said


def test_page_port_in_use(start_locust: Callable[..., Locust]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = start_locust("multi_round.py", "--web-host", "127.0.0.1", "--web-port", port).wait()
    assert code == 2, output
    assert f"127.0.0.1:{port}" in output
    assert "--web-port" in output


def test_master_port_in_use(refused: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused(
            "--target", "http://x/v1", "--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port
        )
    assert f"127.0.0.1:{port}" in said
    assert "--master-bind-port" in said


def test_option_out_of_range(refused: Callable[..., str], llama_cpp: RunningServer) -> None:
    said = refused("--target", llama_cpp.url, "--warm-up-requests=-1")
    assert "warm-up-requests" in said


def test_other_users_than_the_scenario_has_running_sessions(
    refused: Callable[..., str], scenario: Callable[[str], Path], slow_server: Callable[..., SlowServer]
) -> None:
    said = refused("--scenario", scenario(CHAT + "running_sessions: 3\n"), "--target", slow_server(0).url)
    assert "has 3 running sessions, but 1 users were asked for: start 3 users" in said
