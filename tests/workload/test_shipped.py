"""What the shipped scenarios of sharing, pressure and faults are for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness.workload.prefixes import planned_reuse
from harness.workload.pressure import solve_pressure, working_set_tokens
from harness.workload.scenario import LongDocument, Scenario, load_scenario
from harness.workload.sharing import achieved_sharing
from harness.workload.workload import Workload

SHIPPED = Path(__file__).parents[2] / "scenarios"


def shipped(name: str) -> Scenario:
    return load_scenario(name, SHIPPED)


def test_a_few_of_the_shared_tenants_have_most_of_the_chats() -> None:
    workload = Workload(shipped("shared-tenants"), "n")
    tenants = Counter(workload.session(number).tenant for number in range(400))
    assert set(tenants) == {f"tenant-{number}" for number in range(8)}
    assert sum(times for _, times in tenants.most_common(3)) > 200


@pytest.mark.parametrize("capacity_tokens", [16_384, 100_000, 1_000_000])
def test_thrashing_documents_take_twice_the_room_that_there_is(capacity_tokens: int) -> None:
    scenario = solve_pressure(shipped("thrashing-documents"), capacity_tokens)
    assert working_set_tokens(scenario) / capacity_tokens == pytest.approx(2.0, abs=0.15)


def test_thrashing_documents_come_back_only_after_more_than_the_capacity() -> None:
    capacity_tokens = 50_000
    scenario = solve_pressure(shipped("thrashing-documents"), capacity_tokens)
    assert isinstance(scenario, LongDocument)
    assert scenario.documents
    workload = Workload(scenario, "n")
    between = planned_reuse(map(workload.session, range(scenario.documents)))
    assert between.new_tokens > 1.9 * capacity_tokens
    assert workload.session(0).opening == workload.session(scenario.documents).opening


def test_the_timestamp_is_all_that_tells_its_scenario_from_the_agent_loop() -> None:
    faulty, sound = shipped("timestamp-first"), shipped("agent-loop")
    same = {"name": sound.name, "description": sound.description, "fault": None}
    assert faulty.model_copy(update=same) == sound
    assert achieved_sharing(Workload(faulty, "n"), 100) < achieved_sharing(Workload(sound, "n"), 100) - 0.2
