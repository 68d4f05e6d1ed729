"""The Makefile: every target says what it is for, and calls commands that exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from harness.cli import app

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)


def make(*words: str) -> str:
    # of the environment PATH alone: these tests may themselves be run by make, with variables of its own
    path = {"PATH": os.environ["PATH"]}
    return subprocess.run(["make", *words], cwd=ROOT, env=path, check=True, capture_output=True, text=True).stdout


def test_every_target_and_every_variable_is_explained() -> None:
    assert TARGETS is not None
    listed = make("help")
    for target in TARGETS[1].split():
        assert re.search(rf"^make {target} +\w", listed, re.MULTILINE), target
    for variable in re.findall(r"^(\w+) \?=", MAKEFILE, re.MULTILINE):
        assert re.search(rf"^{variable} +\w", listed, re.MULTILINE), variable
    assert "(agent-loop)" in listed  # the default values stand there too
    assert make() == listed


def test_every_recipe_is_one_or_two_lines() -> None:
    recipes = re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert TARGETS is not None
    assert sorted(name for name, _ in recipes) == sorted(TARGETS[1].split())
    assert all(recipe.count("\n") <= 2 for _, recipe in recipes)


@pytest.mark.parametrize("target", ["demo", "run", "web", "master", "worker", "report", "prove", "evict", "isolate"])
def test_the_command_behind_a_target_takes_its_options(target: str) -> None:
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    last = shlex.split(make("-n", target, "MODEL=tiny").splitlines()[-1])
    assert last[:2] == [".venv/bin/kvswarm", target]
    context = command.commands[target].make_context(target, last[2:])
    assert context.args == []  # what run and web would hand on to Locust


def test_every_test_runs_once_beside_others_or_by_itself() -> None:
    beside, alone = (shlex.split(line) for line in make("-n", "test", "ARGS=-k this", "JOBS=3").splitlines()[-2:])
    assert beside[2:] == ["pytest", "-m", "not timing", "-n", "3", *beside[7:]]
    assert alone[2:] == ["pytest", "-m", "timing", *alone[5:]]
    for command in (beside, alone):
        assert command[command.index("-k") + 1] == "this"
        assert command[command.index("||") :] == ["||", "[", "$?", "=", "5", "]"]  # none of this kind was asked for
