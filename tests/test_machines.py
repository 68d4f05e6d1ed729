"""`kvswarm worker HOST`: which Locust processes it starts, and for which master."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.errors import InputError


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that were started, in place of running them."""
    commands: list[Sequence[str]] = []

    def wait_for(*given: Sequence[str]) -> int:
        commands.extend(given)
        return 0

    monkeypatch.setattr("harness.launch.wait_for", wait_for)
    return commands


def option(command: Sequence[str], name: str) -> str:
    return command[command.index(name) + 1]


@pytest.mark.parametrize(
    ("machine", "host", "port"),
    [
        ("node-1", "node-1", "5557"),
        ("10.0.0.1:6000", "10.0.0.1", "6000"),
        ("[fd00::1]", "[fd00::1]", "5557"),
        ("[fd00::1]:6000", "[fd00::1]", "6000"),
    ],
)
def test_a_worker_process_for_each_that_was_asked_for(
    started: list[Sequence[str]], machine: str, host: str, port: str
) -> None:
    done = CliRunner().invoke(app, ["worker", machine, "--workers", "3", "--loglevel", "DEBUG"])
    assert done.exit_code == 0, done.output
    assert len(started) == 3
    for command in started:
        assert (option(command, "--master-host"), option(command, "--master-port")) == (host, port)
        assert "--worker" in command
        assert option(command, "--loglevel") == "DEBUG"


@pytest.mark.parametrize("machine", ["", "fd00::1", "node:", "node:x", "node:1:2"])
def test_what_names_no_machine_is_refused(started: list[Sequence[str]], machine: str) -> None:
    done = CliRunner().invoke(app, ["worker", machine])
    assert isinstance(done.exception, InputError)
    assert "HOST:PORT" in str(done.exception)
    assert not started


def test_the_master_serves_its_page_on_loopback_only(started: list[Sequence[str]]) -> None:
    CliRunner().invoke(app, ["master", "--port", "9000", "--link-port", "6000", "--headless"])
    (command,) = started
    assert "--master" in command
    assert (option(command, "--master-bind-port"), option(command, "--web-port")) == ("6000", "9000")
    assert option(command, "--web-host") == "127.0.0.1"
    assert "--processes" not in command
    assert command[-1] == "--headless"
