"""What a sentence tells a person to type can be typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.command import kvswarm


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment's folder of commands, with a `kvswarm` that is not on the PATH."""
    folder = tmp_path / "project" / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "kvswarm").write_text("#!/bin/sh\n")
    (folder / "kvswarm").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


def test_by_name_if_the_shell_finds_it(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(installed))
    assert kvswarm() == "kvswarm"


def test_by_its_path_from_the_project(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(installed.parents[1])
    assert kvswarm() == ".venv/bin/kvswarm"


def test_by_its_whole_path_from_elsewhere(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (installed.parents[2] / "elsewhere").mkdir()
    monkeypatch.chdir(installed.parents[2] / "elsewhere")
    assert kvswarm() == str(installed / "kvswarm")


def test_by_name_where_it_is_not_installed(installed: Path) -> None:
    (installed / "kvswarm").unlink()
    assert kvswarm() == "kvswarm"
