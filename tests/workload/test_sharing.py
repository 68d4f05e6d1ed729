"""Sharing asked for as a number, and the sharing that a plan has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.errors import ScenarioError
from harness.workload.scenario import Scenario
from harness.workload.sharing import achieved_sharing
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop, long_document, multi_round, sharing_by_tokens

FAULTS = [
    agent_loop(fault={"kind": "timestamp-first", "rate": 0.3}),
    agent_loop(fault={"kind": "request-id-first", "rate": 0.3}),
    agent_loop(fault={"kind": "tools-shuffled", "rate": 0.5}),
    multi_round(fault={"kind": "preamble-first", "rate": 0.5}),
    multi_round(fault={"kind": "whitespace-changed", "rate": 0.5}),
    long_document(fault={"kind": "whitespace-changed"}),
    long_document(fault={"kind": "passages-reranked", "rate": 0.5}, corpus="words"),
]
TREE = [
    {"name": "base", "fan_out": 1, "tokens": 40},
    {"name": "tenant", "fan_out": 3, "tokens": {"uniform": [5, 50]}, "popularity": {"zipf": 1.1}},
]


@pytest.mark.parametrize("scenario", [agent_loop(), long_document(), multi_round(sharing=TREE), *FAULTS], ids=str)
def test_achieved_sharing_is_what_comparing_token_by_token_gives(scenario: Scenario) -> None:
    workload = Workload(scenario, "n")
    assert achieved_sharing(workload, 12) == pytest.approx(
        sharing_by_tokens(map(workload.session, range(12))), abs=1e-12
    )


def test_achieved_sharing_of_fixed_lengths_is_worked_out_by_hand() -> None:
    scenario = multi_round(system_tokens=10, preamble_tokens=5, rounds=2, user_tokens=3, output_tokens=2)
    # One session sends 18, then 18 + 5 tokens: 23 of 41 are new; the next knows the system prompt.
    assert achieved_sharing(Workload(scenario, "n"), 1) == 1 - 23 / 41
    assert achieved_sharing(Workload(scenario, "n"), 2) == 1 - (23 + 13) / 82


@pytest.mark.parametrize("share", [0.85, 0.9, 0.99])
@pytest.mark.parametrize("kind", [agent_loop, multi_round], ids=lambda kind: kind.__name__)
def test_many_sessions_share_what_was_asked_for(kind: Callable[..., Scenario], share: float) -> None:
    workload = Workload(kind(sharing=share), "n")
    assert achieved_sharing(workload, 1000) == pytest.approx(share, abs=0.003)


@pytest.mark.parametrize("keys", [{}, {"fan_out": 5}, {"fan_out": 5, "popularity": {"zipf": 1.0}}], ids=str)
@pytest.mark.parametrize("sessions", [40, 200])
def test_a_stated_number_of_sessions_shares_what_was_asked_for_to_the_token(
    keys: dict[str, object], sessions: int
) -> None:
    for kind in (agent_loop, multi_round):
        workload = Workload(kind(sharing={"share": 0.8, "sessions": sessions, **keys}), "n")
        assert achieved_sharing(workload, sessions) == pytest.approx(0.8, abs=0.001)


def test_documents_count_in_the_number() -> None:
    scenario = long_document(documents=30, sharing={"share": 0.9, "sessions": 100})
    assert achieved_sharing(Workload(scenario, "n"), 100) == pytest.approx(0.9, abs=0.001)


def test_a_number_is_solved_into_one_level_with_as_many_contents_as_asked_for() -> None:
    one = Workload(agent_loop(sharing=0.9), "n").levels
    many = Workload(agent_loop(sharing={"share": 0.9, "fan_out": 7}), "n").levels
    assert [(level.name, level.fan_out, level.tenant) for level in (*one, *many)] == [
        ("shared", 1, False),
        ("shared", 7, True),
    ]
    assert one[0].tokens == many[0].tokens  # in the long run all contents are known


def test_a_fault_leaves_the_length_that_was_solved_for() -> None:
    fault = {"kind": "timestamp-first"}
    assert Workload(agent_loop(sharing=0.9, fault=fault), "n").levels == Workload(agent_loop(sharing=0.9), "n").levels


def test_the_lengths_of_a_solved_tree_are_worked_out_by_hand() -> None:
    scenario = multi_round(
        system_tokens=0, preamble_tokens=0, rounds=1, user_tokens=10, sharing={"share": 0.75, "sessions": 8}
    )
    # 8 requests of T + 10 tokens, of which T once and 8 times 10 are new: 1 - (T + 80) / (8 T + 80) = 3/4 for T = 60.
    assert Workload(scenario, "n").levels[0].tokens == 60


def test_less_than_sessions_share_by_themselves_is_refused_with_what_they_do() -> None:
    with pytest.raises(ScenarioError, match=r"small, key sharing: 0.2 is too low, as its requests share 0\.\d+ with"):
        Workload(agent_loop(sharing=0.2), "n")


def test_the_least_that_is_named_can_be_asked_for() -> None:
    with pytest.raises(ScenarioError) as caught:
        Workload(agent_loop(sharing=0.2), "n")
    least = float(str(caught.value).split("share ")[1].split()[0])
    Workload(agent_loop(sharing=least), "n")


def test_more_than_can_be_reached_is_refused_with_the_most_that_can() -> None:
    # The first of 4 requests finds an empty cache, so that less than 3 of 4 tokens can be shared.
    scenario = multi_round(rounds=1, sharing={"share": 0.8, "sessions": 4})
    with pytest.raises(ScenarioError, match=r"key sharing: 0.8 is too high, as no more than 0.749 can be reached in 4"):
        Workload(scenario, "n")
    with pytest.raises(ScenarioError, match=r"0.999999 is too high"):
        Workload(agent_loop(sharing=0.999999), "n")
