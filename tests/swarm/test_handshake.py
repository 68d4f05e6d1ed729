"""Who takes part in a run, and why a worker is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import pytest

from harness import __version__
from harness.swarm import roll_call as module
from harness.swarm.handshake import PACKAGE, REFUSED, refusal, source_fingerprint
from harness.swarm.roll_call import Roll, RollCall
from harness.workload.scenario import LongDocument, Scenario
from tests.swarm.fake_workers import OWN, Runner, Worker
from tests.workload.samples import agent_loop, long_document


def call(scenario: Scenario | None = None, **workers: Worker) -> Roll:
    return RollCall(Runner(**workers)).call(list(workers), scenario or agent_loop())


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 1.0)
    monkeypatch.setattr(module, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(module, "FILES_S", 1.0)
    monkeypatch.setattr(module, "ROUND_S", 0.3)


def test_workers_like_the_master_take_part_in_the_order_of_the_call() -> None:
    roll = call(b=Worker(), a=Worker())
    assert list(roll.present) == ["b", "a"]
    assert roll.present["a"] == OWN
    assert roll.refused == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kvswarm": "0.0.9"}, f"it has kvswarm 0.0.9, the master has {__version__}"),
        ({"format_version": 1}, "it writes format version 1"),
        ({"source": "0123456789ab"}, "from other source files (0123456789ab there"),
    ],
)
def test_another_kvswarm_is_refused_and_the_run_goes_on_with_the_others(change: dict[str, Any], words: str) -> None:
    other = Worker(replace(OWN, host="far", **change))
    roll = call(a=Worker(), other=other)
    assert list(roll.present) == ["a"]
    (sentence,) = roll.refused
    assert sentence.startswith("worker other on far was refused: ")
    assert words in sentence
    gevent.sleep(0.01)
    assert words in other.reason
    assert other.heard[-2:] == [REFUSED, "quit"]  # its process ends, with the reason in its log


def test_another_python_is_no_reason() -> None:
    assert refusal(OWN, replace(OWN, python="3.12.1", host="elsewhere")) is None


def test_a_worker_that_does_not_know_the_question_is_refused() -> None:
    roll = call(a=Worker(), old=Worker(credentials=None))
    assert list(roll.present) == ["a"]
    assert "it has an older one" in roll.refused[0]


def test_a_worker_whose_locustfile_is_loaded_late_is_asked_again() -> None:
    late = Worker(credentials=None)
    gevent.spawn_later(0.08, setattr, late, "credentials", OWN)
    assert list(call(late=late).present) == ["late"]


def test_a_worker_that_went_away_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 60.0)
    monkeypatch.setattr(module, "ASK_AGAIN_S", 60.0)
    runner = Runner(a=Worker(), gone=Worker(credentials=None))
    gevent.spawn_later(0.05, runner.clients.pop, "gone")
    with gevent.Timeout(10):
        assert list(RollCall(runner).call(["a", "gone"], agent_loop()).present) == ["a"]


def test_other_files_of_the_scenario_are_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("A text.\n\nAnother text.")
    scenario = long_document(corpus=str(tmp_path / "corpus.txt"))
    assert isinstance(scenario, LongDocument)
    other, without = Worker(files={"files": "feedfeedfeedfeed"}), Worker(files={"problem": "There is no file x."})
    roll = call(scenario, a=Worker(), other=other, without=without)
    assert list(roll.present) == ["a"]
    assert "its files of" in roll.refused[0]
    assert roll.refused[1].endswith("There is no file x")


def test_sources_are_alike_wherever_they_lie_and_differ_by_one_character(tmp_path: Path) -> None:
    small = tmp_path / "a" / "record"
    shutil.copytree(PACKAGE / "record", small, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(small, tmp_path / "elsewhere")
    assert source_fingerprint(small) == source_fingerprint(tmp_path / "elsewhere")
    with (tmp_path / "elsewhere" / "manifest.py").open("a") as file:
        file.write("\n")
    assert source_fingerprint(small) != source_fingerprint(tmp_path / "elsewhere")


def test_clocks_are_measured_within_the_error_and_only_of_those_that_answer() -> None:
    ahead_ns = 3_600 * 10**9
    workers = {"here": Worker(), "ahead": Worker(ahead_ns=ahead_ns), "deaf": Worker(credentials=None)}
    offsets = RollCall(Runner(**workers)).clock_offsets(list(workers))
    assert set(offsets) == {"here", "ahead"}
    assert offsets["here"].shift_ns == 0
    assert abs(offsets["ahead"].offset_ns - ahead_ns) <= offsets["ahead"].error_ns + 1
    assert offsets["ahead"].shift_ns == offsets["ahead"].offset_ns
