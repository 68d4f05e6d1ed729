"""Before a run: what the target is asked, what is refused, and how the run begins cold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from harness.engines.base import ResetOutcome
from harness.engines.target import Target
from harness.errors import InputError, TargetError
from harness.swarm.cold_start import cold_start
from harness.swarm.options import RunOptions
from harness.swarm.prepare import SEATS, USERS, Preparation, prepare, results_base
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
    """Prepare a run against an engine with the given context and slots; other keywords are options."""
    path = tmp_path / "three-steps.yaml"
    path.write_text(SCENARIO)

    def make(context_tokens: int | None = None, slots: int | None = None, **options: Any) -> Preparation:
        def usual(target: Target) -> FakeEngine:
            return FakeEngine(target, FakeTarget(tokenizer), context_tokens, NOT_EMPTY, slots)

        monkeypatch.setattr("harness.swarm.prepare.connect", options.pop("connect", usual))
        given = {
            "changes": "",
            "together": False,
            "users": None,
            "run_time_s": 10.0,
            "model": "",
            "cold_start": "nonce",
            "warm_up_requests": 0,
            "drain_timeout_s": 1.0,
            "run_id": "r1",
        }
        return prepare(RunOptions(**{"scenario": str(path), "target": URL, "results": "results", **given, **options}))

    return make


def longest_request(made: Preparation) -> int:
    """By hand: template, openers, task, two observations and three answers of the scenario above."""
    template = made.lanes[0].lexicon.template
    between = 2 * (template.between["user>assistant"] + template.between["assistant>user"])
    around = template.head["user"] + between + template.tail["user"] + 5 * template.opener_tokens
    return around + 50 + 2 * 20 + 3 * 10


def test_a_context_that_just_holds_the_longest_request_is_enough(prepared: Prepare) -> None:
    needed = longest_request(prepared())
    assert prepared(context_tokens=needed).lanes[0].identity.context_tokens == needed
    with pytest.raises(TargetError) as error:
        prepared(context_tokens=needed - 1)
    assert all(word in str(error.value) for word in (f"can take {needed} ", f"allows {needed - 1};", "three-steps"))


def test_a_context_that_the_engine_does_not_tell_is_no_obstacle(prepared: Prepare) -> None:
    assert prepared(context_tokens=None).lanes[0].identity.context_tokens is None


@pytest.mark.parametrize(
    ("how", "reset", "nonce", "salt", "words"),
    [
        ("nonce", EMPTY, "r1-ab", None, "nonce r1-ab: no earlier run sent these texts"),
        ("salt", EMPTY, "", "r1-ab", "salt r1-ab: the cache is shared with no request"),
        ("none", EMPTY, "", None, "none: the cache may hold texts of earlier runs"),
        ("reset", EMPTY, "", None, "reset: all slots erased"),
        (
            "reset",
            NOT_EMPTY,
            "r1-ab",
            None,
            "nonce r1-ab, as the reset was not complete: the host's memory keeps entries",
        ),
    ],
)
def test_how_the_load_on_a_target_begins_cold(
    tokenizer: Tokenizer, how: str, reset: ResetOutcome, nonce: str, salt: str | None, words: str
) -> None:
    engine = FakeEngine(Target(url=URL), FakeTarget(tokenizer), None, reset)
    begun = cold_start(how, "r1-ab", engine)
    assert (begun.nonce, begun.cache_salt) == (nonce, salt)
    assert begun.words.startswith(words)
    assert engine.resets == (how == "reset")


def test_targets_have_their_turns_one_after_the_other_or_are_loaded_together(prepared: Prepare) -> None:
    two = f"{URL},http://127.0.0.1:8001/v1"
    names = [[lane.target.name for lane in leg] for leg in prepared(target=two).legs]
    assert names == [["127.0.0.1:8000"], ["127.0.0.1:8001"]]
    together = prepared(target=two, together=True, run_time_s=None)
    assert [len(leg) for leg in together.legs] == [2]


def test_a_run_of_the_same_name_elsewhere_has_other_texts(prepared: Prepare) -> None:
    first, second = prepared(), prepared()
    assert first.run_id == second.run_id == "r1"
    assert first.nonce.startswith("r1-")
    assert first.nonce != second.nonce


def test_turns_need_a_run_time(prepared: Prepare) -> None:
    with pytest.raises(InputError, match=r"2 targets one after the other need a run time.*--run-time.*--together"):
        prepared(target=f"{URL},http://127.0.0.1:8001/v1", run_time_s=None)


def test_all_targets_get_the_same_words_where_their_tokenisers_share_enough(
    tokenizer: Tokenizer, prepared: Prepare
) -> None:
    shared = CANDIDATES[:100:2]
    of_port = {8000: tokenizer, 8001: train(shared)}

    def connect(target: Target) -> FakeEngine:
        return FakeEngine(target, FakeTarget(of_port[int(target.url[-7:-3])]), None, NOT_EMPTY)

    first, second = prepared(target=f"{URL},http://127.0.0.1:8001/v1", connect=connect).lanes
    assert first.lexicon.words == second.lexicon.words
    assert set(second.lexicon.words) <= set(shared)


def test_slots_are_pinned_only_where_their_number_is_known(prepared: Prepare, tmp_path: Path) -> None:
    path = tmp_path / "pinned.yaml"
    path.write_text(f"url: {URL}\npin_slots: true\n")
    assert prepared(target=str(path), slots=4).lanes[0].slots == 4
    assert prepared(slots=4).lanes[0].slots is None
    with pytest.raises(TargetError, match=r"does not tell its number of slots.*identity\.slots"):
        prepared(target=str(path))


def test_the_model_that_is_asked_for_goes_before_the_targets(prepared: Prepare) -> None:
    assert prepared(model="other").lanes[0].identity.model == "other"
    assert prepared().lanes[0].identity.model == "m"


def test_a_run_without_a_name_gets_time_and_scenario(prepared: Prepare) -> None:
    day, time, name = prepared(run_id="").run_id.split("-", 2)
    assert (len(day), len(time), name) == (8, 6, "three-steps")
    assert prepared(run_id="mine").run_id == "mine"


def test_results_have_an_absolute_place(prepared: Prepare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert results_base(prepared(results="runs").options) == str(tmp_path / "runs")
    assert results_base(prepared(results="s3://bucket/runs").options) == "s3://bucket/runs"


def test_the_users_are_those_that_were_asked_for_or_the_running_sessions(prepared: Prepare) -> None:
    assert prepared().users == USERS
    assert prepared(users=7).users == 7
    running = {"changes": "running_sessions=3"}
    assert prepared(**running).users == prepared(users=3, **running).users == 3
    twice = {"target": f"{URL},{URL.replace('127.0.0.1', 'localhost')}", **running}
    assert prepared(**twice).users == 3
    assert prepared(together=True, **twice).users == 6
    with pytest.raises(InputError, match="has 3 running sessions on each target, but 3 users were asked for: start 6"):
        prepared(together=True, users=3, **twice)


OPEN = {"load": "open", "rate": "2", "arrivals": "poisson"}


def test_in_an_open_loop_users_are_seats_that_are_all_there_from_the_start(prepared: Prepare) -> None:
    assert prepared(**OPEN).users == SEATS
    assert not prepared(**OPEN).ramps
    assert prepared(users=7, spawn_rate=7.0, **OPEN).users == 7
    two = {"target": f"{URL},http://127.0.0.1:8001/v1", "together": True}
    assert prepared(**two, **OPEN).users == 2 * SEATS
    with pytest.raises(InputError, match=r"make the spawn rate .* 7 or more"):
        prepared(users=7, spawn_rate=1.0, **OPEN)


def test_a_closed_loop_ramps_where_locust_starts_users_little_by_little(prepared: Prepare) -> None:
    assert prepared(users=8).ramps  # Locust starts one a second if nobody says otherwise
    assert prepared(users=8, spawn_rate=7.0).ramps
    assert not prepared(users=8, spawn_rate=8.0).ramps
    assert not prepared(users=1).ramps


def test_what_an_open_loop_cannot_play_is_refused(prepared: Prepare) -> None:
    with pytest.raises(InputError, match="keeps 3 sessions running, as an open loop does not"):
        prepared(changes="running_sessions=3", **OPEN)
    with pytest.raises(InputError, match="scenario three-steps has none: take a replay"):
        prepared(load="open", arrivals="trace")
    with pytest.raises(InputError, match="look at 20000 sessions that began before"):
        prepared(stagger=True, changes="think_time_s=5000", **OPEN)
    assert prepared(stagger=True, changes="think_time_s=5", **OPEN).options.stagger
