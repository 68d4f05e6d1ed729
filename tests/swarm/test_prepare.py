"""Before a run: what the target is asked, what is refused, and how the run begins cold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from harness.engines.base import ResetOutcome
from harness.engines.target import Target
from harness.errors import TargetError
from harness.swarm.options import RunOptions
from harness.swarm.prepare import Preparation, prepare, results_base
from harness.workload.words import CANDIDATES
from tests.swarm.fakes import URL, FakeEngine
from tests.workload.fake_target import FakeTarget, train

SCENARIO = """
name: three-steps
kind: agent-loop
task_tokens: 50
steps: 3
observation_tokens: 20
output_tokens: 10
"""
NOT_EMPTY = ResetOutcome(complete=False, message="the host's memory keeps entries")
EMPTY = ResetOutcome(complete=True, message="all slots erased")

Prepare = Callable[..., Preparation]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train(CANDIDATES)


@pytest.fixture
def prepared(tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prepare:
    """Prepare a run against an engine with the given context and cache reset; other keywords are options."""
    path = tmp_path / "three-steps.yaml"
    path.write_text(SCENARIO)

    def make(context_tokens: int | None = None, reset: ResetOutcome = NOT_EMPTY, **options: Any) -> Preparation:
        def connect(target: Target) -> FakeEngine:
            return FakeEngine(target, FakeTarget(tokenizer), context_tokens, reset)

        monkeypatch.setattr("harness.swarm.prepare.connect", connect)
        given = {"model": "", "cold_start": "nonce", "warm_up_requests": 0, "drain_timeout_s": 1.0, "run_id": "r1"}
        return prepare(RunOptions(**{"scenario": str(path), "target": URL, "results": "results", **given, **options}))

    return make


def longest_request(made: Preparation) -> int:
    """By hand: template, openers, task, two observations and three answers of the scenario above."""
    template = made.lexicon.template
    between = 2 * (template.between["user>assistant"] + template.between["assistant>user"])
    around = template.head["user"] + between + template.tail["user"] + 5 * template.opener_tokens
    return around + 50 + 2 * 20 + 3 * 10


def test_a_context_that_just_holds_the_longest_request_is_enough(prepared: Prepare) -> None:
    needed = longest_request(prepared())
    assert prepared(context_tokens=needed).identity.context_tokens == needed
    with pytest.raises(TargetError) as error:
        prepared(context_tokens=needed - 1)
    assert all(word in str(error.value) for word in (f"can take {needed} ", f"allows {needed - 1};", "three-steps"))


def test_a_context_that_the_engine_does_not_tell_is_no_obstacle(prepared: Prepare) -> None:
    assert prepared(context_tokens=None).identity.context_tokens is None


@pytest.mark.parametrize(
    ("how", "reset", "nonce", "words"),
    [
        ("nonce", EMPTY, "r1", "nonce: no earlier run sent these texts"),
        ("none", EMPTY, "", "none: the cache may hold texts of earlier runs"),
        ("reset", EMPTY, "", "reset: all slots erased"),
        ("reset", NOT_EMPTY, "r1", "nonce, as the reset was not complete: the host's memory keeps entries"),
    ],
)
def test_how_the_run_begins_cold(prepared: Prepare, how: str, reset: ResetOutcome, nonce: str, words: str) -> None:
    made = prepared(reset=reset, cold_start=how)
    assert made.nonce == nonce
    assert made.cold_start.startswith(words)
    assert isinstance(made.engine, FakeEngine)
    assert made.engine.resets == (how == "reset")


def test_the_model_that_is_asked_for_goes_before_the_targets(prepared: Prepare) -> None:
    assert prepared(model="other").identity.model == "other"
    assert prepared().identity.model == "m"


def test_a_run_without_a_name_gets_time_and_scenario(prepared: Prepare) -> None:
    day, time, name = prepared(run_id="").run_id.split("-", 2)
    assert (len(day), len(time), name) == (8, 6, "three-steps")
    assert prepared(run_id="mine").run_id == "mine"


def test_results_have_an_absolute_place(prepared: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert results_base(prepared(results="runs").options) == str(tmp_path / "runs")
    assert results_base(prepared(results="s3://bucket/runs").options) == "s3://bucket/runs"
