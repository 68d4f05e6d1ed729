"""report.html at the end of a run: a run is as good without it."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.record.storage import Folder
from harness.swarm.report_file import ReportFile


def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[list[str]]:
    """What was called to make the report, where `answer` is what comes of it."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> Any:
        commands.append(command)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr("subprocess.run", run)
    ReportFile(Folder.at(tmp_path)).wait()
    return commands


def test_it_is_made_by_a_process_that_gives_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (command,) = made(tmp_path, monkeypatch, SimpleNamespace(returncode=0, stderr=""))
    assert command[:3] == ["nice", "-n", "10"]
    assert command[-3:] == ["report", str(tmp_path), "--html"]
    assert capsys.readouterr().out == f"kvswarm: the report with plots is {tmp_path / 'report.html'}\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SimpleNamespace(returncode=2, stderr="Traceback\nkvswarm: run.json is damaged.\n"), "run.json is damaged"),
        (SimpleNamespace(returncode=-9, stderr=""), "exit code -9"),
        (FileNotFoundError(2, "No such file or directory"), "[Errno 2] No such file or directory"),
    ],
)
def test_why_it_could_not_be_made_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: Any,
    reason: str,
) -> None:
    with caplog.at_level(logging.WARNING):
        made(tmp_path, monkeypatch, answer)
    (message,) = caplog.messages
    assert f"report.html could not be made ({reason}); the run is complete without it" in message
