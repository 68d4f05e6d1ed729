"""`make setup`: what it does, and what it says when it cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "harness" / "set_up.py"

SetUp = Callable[..., list[str]]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, at work in an empty project."""
    spec = importlib.util.spec_from_file_location("set_up", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for constant in ("ROOT", "VENV", "PACKAGES", "ENGINE", "PROJECT"):
        monkeypatch.setattr(module, constant, tmp_path / getattr(module, constant).relative_to(SCRIPT.parents[1]))
    for path in (module.PACKAGES, module.ENGINE, module.PROJECT):
        path.write_text("as it was")
    return module


@pytest.fixture
def set_up(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> SetUp:
    """Run it, with all commands recorded instead of run; gives the last word of each."""

    def run(failing: str = "no command", code: int = 0) -> list[str]:
        ran: list[str] = []

        def call(command: list[str | Path]) -> int:
            ran.append(Path(command[-1]).name)
            script.VENV.mkdir(exist_ok=True)
            return int(ran[-1] == failing)

        monkeypatch.setattr(script.subprocess, "call", call)
        assert script.main() == code
        return ran

    return run


def test_a_second_time_it_does_nothing_and_says_nothing(
    set_up: SetUp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_up() == [".venv", "requirements.lock", "requirements-embedded.lock", tmp_path.name]
    assert "set-up: making .venv with python3." in capsys.readouterr().out
    assert set_up() == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-embedded.lock"])
def test_another_lock_makes_the_environment_anew(set_up: SetUp, script: ModuleType, tmp_path: Path, name: str) -> None:
    set_up()
    left_over = script.VENV / "left-over"
    left_over.touch()
    (tmp_path / name).write_text("newer")
    assert set_up()[0] == ".venv"
    assert not left_over.exists()
    assert set_up() == []


def test_another_pyproject_installs_only_the_project_again(set_up: SetUp, script: ModuleType, tmp_path: Path) -> None:
    set_up()
    script.PROJECT.write_text("newer")
    assert set_up() == [tmp_path.name]
    assert set_up() == []


def test_a_system_without_the_wheel_gets_all_the_rest_and_the_alternatives(
    set_up: SetUp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_up(failing="requirements-embedded.lock")[-1] == tmp_path.name
    assert "take llama-server from your system's packages, brew" in capsys.readouterr().out
    assert set_up() == []


@pytest.mark.parametrize(
    ("failing", "sentence"), [(".venv", "apt install python3-venv"), ("requirements.lock", "pip failed")]
)
def test_what_fails_is_said_and_tried_again(
    set_up: SetUp, capsys: pytest.CaptureFixture[str], failing: str, sentence: str
) -> None:
    assert set_up(failing=failing, code=1)[-1] == failing
    assert sentence in capsys.readouterr().err
    assert set_up()[0] == ".venv"


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_a_python_that_does_not_fit_is_refused(
    set_up: SetUp,
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    version: tuple[int, int, int],
) -> None:
    monkeypatch.setattr(script.sys, "version_info", version)
    assert set_up(code=1) == []
    assert "needs Python 3.11 to 3.13" in capsys.readouterr().err
