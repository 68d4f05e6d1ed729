"""Keys of a scenario with other values: as if they stood in its file."""

from __future__ import annotations

import pytest

from harness.errors import ScenarioError
from harness.workload.change import changed
from tests.workload.samples import agent_loop, long_document


def test_keys_get_the_values_that_a_file_would_give_them() -> None:
    scenario = changed(agent_loop(), "steps=7; seed = 3; task_tokens={uniform: [5, 9]}")
    assert scenario == agent_loop(steps=7, seed=3, task_tokens={"uniform": [5, 9]})


def test_a_dot_leads_into_a_mapping_which_is_made_if_need_be() -> None:
    scenario = changed(long_document(), "fault.kind=timestamp-first; fault.rate=0.5")
    assert scenario.fault is not None
    assert (scenario.fault.kind, scenario.fault.rate) == ("timestamp-first", 0.5)
    assert changed(scenario, "fault.rate=1").fault == scenario.fault.model_copy(update={"rate": 1.0})
    assert changed(scenario, "fault=null").fault is None


def test_nothing_to_change_is_the_same_scenario() -> None:
    scenario = agent_loop()
    assert changed(scenario, " ") is scenario


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps", ["'steps'", "key=value"]),
        ("=3", ["key=value"]),
        ("steps=-1", ["key steps"]),
        ("stepps=3", ["key stepps"]),
        ("seed=3; seed.more=3", ["seed is no mapping"]),
        ("steps=[1", ["YAML"]),
    ],
)
def test_what_cannot_be_set_is_named(text: str, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as error:
        changed(agent_loop(), text)
    assert all(word in str(error.value) for word in words), error.value
