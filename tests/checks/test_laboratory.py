"""The laboratory: prompts of known length, and a run directory like any other's, however it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.analysis import load
from harness.checks.labbook import labbook, write_line
from harness.checks.laboratory import Finding, Laboratory, Unanswered, opened, targets_of
from harness.checks.lexicon import NOTHING_COUNTED
from harness.engines.target import Target
from harness.errors import InputError
from harness.record.reader import open_run
from tests.checks.silent_server import SilentServer
from tests.checks.toy_server import ToyServer
from tests.engines.scripted_server import scripted_servers

FINDING = Finding("works", 0, "It works.", {"ratio": 0.5})


@pytest.fixture
def laboratory(serve: Callable[[ToyServer], str], tmp_path: Path) -> Iterator[Laboratory]:
    target = Target(url=serve(ToyServer(16)), headers={"X-Team": "secret-team"})
    with opened("prove", target, str(tmp_path / "runs"), {"prefixes": 5}) as made:
        yield made


@pytest.fixture
def silent() -> Iterator[Callable[[SilentServer], str]]:
    with scripted_servers() as start:
        yield lambda server: start(server.routes)


def interrupted(target: Target, results: str, folders: list[str]) -> None:
    """A check that somebody ends with Ctrl-C."""
    with opened("prove", target, results, {"prefixes": 5}) as laboratory:
        folders.append(laboratory.folder)
        with laboratory.warming():
            laboratory.chat("load", laboratory.prompt(("w", 30)))
        for group in range(2):
            laboratory.group(group)
            laboratory.chat("cold", laboratory.prompt((f"{group}", 100)))
            laboratory.chat("warm", laboratory.prompt((f"{group}", 100), ("q", 20)))
        raise KeyboardInterrupt


def failing(target: Target, results: str, folders: list[str]) -> None:
    """A check of a target that answers no more."""
    with opened("prove", target, results, {}) as laboratory:
        folders.append(laboratory.folder)
        for number in range(9):
            assert not laboratory.chat(f"{number}", laboratory.prompt((f"{number}", 30))).is_ok


def test_prompts_have_their_length_and_share_what_has_one_name(laboratory: Laboratory) -> None:
    laboratory.group(0)
    cold = laboratory.chat("cold", laboratory.prompt(("a", 100), ("b", 50)))
    warm = laboratory.chat("warm", laboratory.prompt(("a", 100), ("c", 50)))
    assert cold.prompt_tokens == warm.planned_tokens == 150 + laboratory.around_tokens
    assert (cold.cached_tokens, warm.cached_tokens) == (0, 96)
    assert warm.counter_cached_tokens is None  # the adapter knows no counter


def test_a_shorter_text_of_a_name_is_the_beginning_of_the_longer_one(laboratory: Laboratory) -> None:
    laboratory.chat("long", laboratory.prompt(("a", 100)))
    assert laboratory.chat("short", laboratory.prompt(("a", 60))).cached_tokens == 48


def test_the_run_can_be_read_like_any_other(laboratory: Laboratory, tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    assert open_run(laboratory.run_id, runs).manifest.state == "running"
    folders: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(laboratory.target, runs, folders)
    run = load(folders[0])
    assert (run.manifest.state, run.manifest.stopped_by) == ("incomplete", "user")
    assert run.manifest.options == {"command": "prove", "prefixes": 5}
    assert run.manifest.scenario_name == "prove"
    assert list(run.requests["phase"]) == ["warmup", *["measure"] * 4]
    assert list(run.measured["session"]) == [0, 0, 1, 1]
    assert list(run.measured["warmth"]) == ["cold", "warm", "cold", "warm"]
    assert list(run.measured["prompt_tokens"]) == list(run.measured["planned_prompt_tokens"])
    assert run.requests["request_id"].is_unique
    assert "secret-team" not in run.manifest.model_dump_json()


def test_a_run_that_ends_well_is_complete(serve: Callable[[ToyServer], str], tmp_path: Path) -> None:
    with opened("evict", Target(url=serve(ToyServer())), str(tmp_path), {}) as laboratory:
        laboratory.chat("one", laboratory.prompt(("a", 30)))
    run = load(laboratory.folder)
    assert (run.manifest.state, run.problems) == ("complete", ())
    assert [phase.phase for phase in run.manifest.phases] == ["warmup", "measure"]


def test_a_request_that_fails_is_recorded_and_three_in_a_row_end_it(
    silent: Callable[[SilentServer], str], tmp_path: Path
) -> None:
    target, folders = Target(url=silent(SilentServer(fails=9)), metrics_urls=()), list[str]()
    with pytest.raises(Unanswered, match=r"3 requests in a row .* failed, .* \(http_error\): too busy"):
        failing(target, str(tmp_path), folders)
    run = load(folders[0])
    assert list(run.requests["status"]) == ["http_error"] * 3
    assert run.manifest.state == "incomplete"


def test_a_server_that_counts_nothing_gets_words_and_a_note(
    silent: Callable[[SilentServer], str], tmp_path: Path
) -> None:
    with opened("prove", Target(url=silent(SilentServer()), metrics_urls=()), str(tmp_path), {}) as laboratory:
        answer = laboratory.chat("one", laboratory.prompt(("a", 100)))
    assert (answer.prompt_tokens, answer.cached_tokens) == (101, None)
    assert laboratory.notes == [NOTHING_COUNTED]
    assert not laboratory.lexicon.exact


def test_the_lab_notebook_gets_one_line_each_time(laboratory: Laboratory, tmp_path: Path) -> None:
    for _ in range(2):
        write_line(labbook(tmp_path / "book.jsonl"), "prove", laboratory, FINDING)
    write_line(None, "prove", laboratory, FINDING)
    text = (tmp_path / "book.jsonl").read_text()
    first, second = (json.loads(line) for line in text.splitlines())
    assert first.keys() == second.keys()
    assert (first["command"], first["verdict"], first["exit_code"], first["numbers"]) == (
        "prove",
        "works",
        0,
        {"ratio": 0.5},
    )
    assert (first["run"], first["identity"]["context_tokens"]) == (laboratory.run_id, 8192)
    assert first["time"].endswith("Z")
    assert "secret-team" not in text


def test_a_notebook_that_cannot_be_written_is_told_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written to: Is a directory"):
        labbook(tmp_path)


def test_one_target_is_examined() -> None:
    assert [target.model for target in targets_of(["http://h:1", "http://h:2"], "m")] == ["m", "m"]
    with pytest.raises(InputError, match="names 2 targets"):
        targets_of(["http://h:1,http://h:2"])
