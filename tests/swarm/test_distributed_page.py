"""docs/distributed.md: its units and manifests can be read, and name commands and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from locust import argument_parser
from typer.core import TyperGroup
from typer.main import get_command

from harness.cli import app
from harness.machines_command_line import LINK_PORT
from harness.swarm import delivery, outbox, presence, roll_call
from harness.swarm.plan import FLUSH_EVERY_S

PAGE = (Path(__file__).parents[2] / "docs" / "distributed.md").read_text()
MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def check_command(words: Sequence[str]) -> None:
    """kvswarm takes these words; what it hands on are options of Locust's."""
    assert Path(words[0]).name == "kvswarm"
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    context = command.commands[words[1]].make_context(words[1], list(words[2:]))
    for word in context.args:
        assert word.partition("=")[0] in LOCUST_OPTIONS, word


LOCUST_OPTIONS = {"--headless", "--expect-workers", "--users", "--spawn-rate", "--run-time", "--web-host"}


def test_the_options_handed_on_are_locusts() -> None:
    locusts: Any = argument_parser
    parser = locusts.get_empty_argument_parser()
    locusts.setup_parser_arguments(parser)
    assert set(parser._option_string_actions) >= LOCUST_OPTIONS


def test_the_units_of_systemd_start_commands_that_exist() -> None:
    units = blocks("ini")
    assert len(units) == 2
    for text in units:
        unit = ConfigParser(interpolation=None)
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read_string(text)
        assert set(unit.sections()) == {"Unit", "Service", "Install"}
        service = unit["Service"]
        words = shlex.split(service["ExecStart"])
        assert words[0] == f"{service['WorkingDirectory']}/.venv/bin/kvswarm"
        check_command(words)


def test_the_manifests_of_kubernetes_belong_together() -> None:
    (text,) = blocks("yaml")
    service, job, deployment = yaml.safe_load_all(text)
    assert [item["kind"] for item in (service, job, deployment)] == ["Service", "Job", "Deployment"]
    assert service["spec"]["ports"][0]["port"] == LINK_PORT
    assert service["spec"]["selector"] == job["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]
    master, worker = (words(item) for item in (job, deployment))
    check_command(master)
    check_command(worker)
    assert worker[2] == service["metadata"]["name"]
    (expected,) = [int(word.partition("=")[2]) for word in master if word.startswith("--expect-workers=")]
    (processes,) = [int(word.partition("=")[2]) for word in worker if word.startswith("--workers=")]
    assert expected == deployment["spec"]["replicas"] * processes


def words(item: dict[str, Any]) -> list[str]:
    (container,) = item["spec"]["template"]["spec"]["containers"]
    return [str(word) for word in container["command"]]


@pytest.mark.parametrize("line", re.findall(r"^    make (.+?)(?: +#.*)?$", PAGE, re.MULTILINE))
def test_make_knows_the_target_and_its_variables(line: str) -> None:
    target, *given = shlex.split(line)
    assert re.search(rf"^{target}: ", MAKEFILE, re.MULTILINE)
    for word in given:
        assert re.search(rf"^{word.partition('=')[0]} \?=", MAKEFILE, re.MULTILINE), word


def test_the_numbers_are_those_of_the_code() -> None:
    for sentence in (
        f"until it has been silent for {presence.PATIENCE_S} s".capitalize(),
        f"if no other one is made within {presence.HUNG_UP_S:.0f} s",
        f"no answer within {roll_call.ANSWER_S:.0f} s",
        f"every {FLUSH_EVERY_S:.0f} s, and at its end",
        f"in pieces of {outbox.PIECE_BYTES // 1024} KiB, at most eight under way",
        f"up to {outbox.MOST_BYTES_WAITING // 2**20} MiB",
        f"in `{delivery.UNDELIVERED}/RUN`",
    ):
        assert sentence in PAGE, sentence
    assert outbox.PIECES_UNDER_WAY == 8
    assert roll_call.ROUNDS == 10
    assert delivery.GIVE_UP_S == 60
