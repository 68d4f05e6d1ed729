"""Pressure: a working set that is a multiple of the engine's capacity."""

from __future__ import annotations

import pytest

from harness.errors import InputError, ScenarioError
from harness.workload.prefixes import Prefixes
from harness.workload.pressure import solve_pressure, working_set_tokens
from harness.workload.scenario import LongDocument, Scenario
from harness.workload.tree import Share
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop, long_document, multi_round

TREE = [
    {"name": "base", "fan_out": 1, "tokens": 40},
    {"name": "tenant", "fan_out": 2, "tokens": {"uniform": [50, 150]}, "tenant": True},
    {"name": "folder", "fan_out": 3, "tokens": 70},
]


def heads_in_cache(scenario: Scenario, sessions: int) -> int:
    """Different prefix tokens of what sessions share, by playing so many that all have been there."""
    prefixes = Prefixes()
    for number in range(sessions):
        prefixes.add(Workload(scenario, "n").session(number).shared_head)
    return prefixes.tokens


@pytest.mark.parametrize(
    "scenario",
    [
        long_document(),
        long_document(sharing=TREE[:2], documents=5),
        agent_loop(),
        agent_loop(sharing=TREE),
        multi_round(sharing=TREE[1:]),
        multi_round(sharing={"share": 0.9, "fan_out": 6}),
    ],
    ids=str,
)
def test_the_working_set_is_all_that_sessions_share(scenario: Scenario) -> None:
    assert working_set_tokens(scenario) == heads_in_cache(scenario, 400)


def test_running_sessions_add_what_they_alone_can_come_back_to() -> None:
    scenario = agent_loop(task_tokens=30, steps=3, observation_tokens=5, output_tokens=3, running_sessions=6)
    # Beyond system prompt and tools: nothing at first, then task and answer, then also an observation and an answer.
    assert working_set_tokens(scenario) == 32 + 6 * (0 + 33 + 41) // 3
    chats = multi_round(preamble_tokens=20, rounds=2, user_tokens=4, output_tokens=2, running_sessions=10)
    assert working_set_tokens(chats) == 12 + 10 * (0 + 26) // 2


def test_questions_about_the_bare_document_leave_nothing_to_come_back_to() -> None:
    assert working_set_tokens(long_document(running_sessions=50)) == working_set_tokens(long_document())


@pytest.mark.parametrize("pressure", [0.25, 1.0, 2.0, 4.0])
def test_documents_are_as_many_as_make_the_working_set_asked_for(pressure: float) -> None:
    scenario = long_document(pressure=pressure, documents=None)
    solved = solve_pressure(scenario, 10_000)
    assert isinstance(solved, LongDocument)
    assert solved.documents
    assert working_set_tokens(solved) == pytest.approx(pressure * 10_000, abs=150)  # half of the longest document
    assert solved.capacity_tokens == 10_000
    assert solved.pressure == pressure


def test_the_number_of_documents_is_worked_out_by_hand() -> None:
    scenario = long_document(system_tokens=100, document_tokens=1000, pressure=2.0)
    solved = solve_pressure(scenario, 8_192)
    assert isinstance(solved, LongDocument)
    assert solved.documents == 16  # 100 + 16 * 1,000 is nearest to 16,384


def test_tenants_are_as_many_as_make_the_working_set_asked_for() -> None:
    solved = solve_pressure(agent_loop(sharing=TREE, pressure=2.0), 20_000)
    assert isinstance(solved.sharing, tuple)
    assert [level.fan_out for level in solved.sharing][::2] == [1, 3]
    assert working_set_tokens(solved) == pytest.approx(40_000, abs=250)  # half of a tenant with 3 folders


def test_without_a_tenant_the_lowest_level_grows() -> None:
    levels = [{**level, "tenant": False} for level in TREE]
    solved = solve_pressure(agent_loop(sharing=levels, pressure=1.0), 20_000)
    assert isinstance(solved.sharing, tuple)
    assert [level.fan_out for level in solved.sharing][:2] == [1, 2]
    assert solved.sharing[2].fan_out > 3


def test_share_and_pressure_together_give_length_and_number() -> None:
    solved = solve_pressure(multi_round(sharing=0.95, pressure=3.0), 20_000)
    assert isinstance(solved.sharing, Share)
    (level,) = Workload(solved, "n").levels
    assert isinstance(level.tokens, int)
    assert level.tokens == Workload(multi_round(sharing=0.95), "n").levels[0].tokens
    assert solved.sharing.fan_out * (level.tokens + 12) == pytest.approx(60_000, abs=level.tokens)


def test_without_a_tree_it_is_the_sessions_that_run_at_the_same_time() -> None:
    scenario = agent_loop(task_tokens=30, steps=3, observation_tokens=5, output_tokens=3, pressure=2.0)
    solved = solve_pressure(scenario, 1_000)
    assert solved.running_sessions == 80  # 32 + 80 * 74 / 3 = 2,005
    assert working_set_tokens(solved) == 2005


@pytest.mark.parametrize(
    "scenario",
    [
        long_document(pressure=2.0, documents=None),
        agent_loop(sharing=TREE, pressure=2.0),
        multi_round(sharing=0.9, pressure=2.0),
        multi_round(pressure=2.0),
    ],
    ids=str,
)
def test_a_solved_scenario_stays_as_it_is_on_its_way_to_a_worker(scenario: Scenario) -> None:
    solved = solve_pressure(scenario, 20_000)
    assert solve_pressure(solved, None) == solved
    assert Workload(Scenario.from_json(solved.to_json()), "n").scenario == solved


def test_without_pressure_nothing_changes() -> None:
    assert solve_pressure(agent_loop(), None) == agent_loop()
    assert solve_pressure(agent_loop(), 1000) == agent_loop()


def test_documents_that_are_given_make_way_for_the_pressure() -> None:
    few, many = (solve_pressure(long_document(pressure=2.0, documents=count), 10_000) for count in (1, 500))
    assert few == many


def test_a_capacity_in_the_scenario_goes_before_that_of_the_target() -> None:
    scenario = long_document(pressure=2.0, capacity_tokens=10_000)
    assert solve_pressure(scenario, 50_000) == solve_pressure(scenario, None)
    assert Workload(scenario, "n").documents_needed == Workload(solve_pressure(scenario, None), "n").documents_needed


def test_an_unknown_capacity_is_refused_with_where_to_give_it() -> None:
    with pytest.raises(
        InputError, match=r"pressure of 2, but .* not known: give identity\.capacity_tokens in the target"
    ):
        solve_pressure(long_document(pressure=2.0), None)
    with pytest.raises(InputError, match=r"identity\.capacity_tokens"):
        Workload(long_document(pressure=2.0), "n")


def test_a_pressure_that_no_number_comes_near_to_is_refused_with_the_nearest() -> None:
    scenario = long_document(system_tokens=0, document_tokens=1000, pressure=0.5)
    with pytest.raises(
        ScenarioError, match=r"pressure of 0\.5 on 1,000 tokens .* number of documents: it is 1 with 1;"
    ):
        solve_pressure(scenario, 1000)
    with pytest.raises(ScenarioError, match=r"number of documents: it is 0\.667 with 1, 1\.33 with 2;"):
        solve_pressure(scenario.model_copy(update={"pressure": 1.0}), 1500)


def test_sessions_that_come_back_to_nothing_make_no_pressure() -> None:
    scenario = multi_round(system_tokens=0, rounds=1, pressure=1.0)
    with pytest.raises(ScenarioError, match="number of running sessions"):
        solve_pressure(scenario, 1000)
