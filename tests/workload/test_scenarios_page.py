"""docs/scenarios.md tells what the models hold, all of it and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from harness.errors import ScenarioError
from harness.workload.faults import FaultKind
from harness.workload.learning import learn
from harness.workload.pressure import solve_pressure
from harness.workload.scenario import (
    AgentLoop,
    LongDocument,
    MultiRound,
    Replay,
    Scenario,
    load_scenario,
    scenario_names,
)
from harness.workload.tree import Level, Share
from harness.workload.workload import Workload
from tests.workload.fake_target import FakeTarget

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The text under a heading, up to the next one."""
    return re.split(r"^#+ ", PAGE.split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def rows(heading: str) -> dict[str, str]:
    """Key and default of each row of a section's table of keys."""
    after = re.split(r"^\| key[\w ]* \| default \| meaning \|\n", section(heading), flags=re.MULTILINE)[1]
    table = after.split("\n\n", 1)[0]
    return dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", table, re.MULTILINE))


def fields(model: type[BaseModel], without: type[BaseModel] | None = None) -> dict[str, str]:
    inherited = without.model_fields if without else {}
    return {name: shown_default(field.default) for name, field in model.model_fields.items() if name not in inherited}


def shown_default(default: object) -> str:
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if default is False:
        return "false"
    return str(default) or "empty"


def example() -> str:
    return section("Your own scenario").split("```yaml\n")[1].split("```")[0]


@pytest.mark.parametrize("model", [AgentLoop, LongDocument, MultiRound, Replay], ids=lambda model: model.__name__)
def test_each_kinds_keys_and_defaults_are_those_of_its_model(model: type[Scenario]) -> None:
    kind = model.model_json_schema()["properties"]["kind"]["const"]
    assert rows(kind) == fields(model, without=Scenario)


def test_the_common_keys_and_defaults_are_those_of_the_model() -> None:
    assert rows("Keys of every kind") == fields(Scenario)


def test_the_keys_of_levels_and_shares_are_those_of_their_models() -> None:
    assert rows("Sharing") == fields(Level)
    assert rows("A number") == fields(Share)


def test_each_fault_is_listed_with_the_kinds_of_scenario_that_have_it() -> None:
    below = section("Arrangement faults").split("| --- |", 1)[1]
    table = dict(re.findall(r"^\| `([\w-]+)` \| (.*?) \|", below, re.MULTILINE))
    models: dict[str, type[Scenario]] = {
        "agent-loop": AgentLoop,
        "long-document": LongDocument,
        "multi-round": MultiRound,
        "replay": Replay,
    }
    assert set(table) == set(get_args(FaultKind))
    for fault, scenarios in table.items():
        kinds = {kind for kind, model in models.items() if fault in model.fault_kinds}
        assert kinds == {kind for kind in models if f"`{kind}`" in scenarios or scenarios == "all"}


def test_each_order_is_listed() -> None:
    orders = re.findall(r"^\| `([\w-]+)` \|", section("Order").split("| --- |", 1)[1], re.MULTILINE)
    assert orders == list(get_args(LongDocument.model_fields["order"].annotation))


def test_the_tree_shown_is_that_of_the_shipped_scenario() -> None:
    shown = yaml.safe_load(section("Sharing").split("```yaml\n")[1].split("```")[0])
    scenario = load_scenario("shared-tenants", ROOT / "scenarios")
    assert MultiRound.model_validate(scenario.model_dump() | shown) == scenario


def test_every_shipped_scenario_is_listed() -> None:
    table = PAGE.split("| shipped |", 1)[1].split("\n\n", 1)[0]
    listed = [cell for row in table.splitlines() for cell in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(listed) == scenario_names(ROOT / "scenarios")


@pytest.mark.parametrize("name", scenario_names(ROOT / "scenarios"))
def test_requests_of_shipped_scenarios_are_as_short_as_the_page_says(name: str, target: FakeTarget) -> None:
    scenario = solve_pressure(load_scenario(name, ROOT / "scenarios"), 100_000)
    lexicon = learn(target.count_text, target.count_chat, target.chat_tokens, scenario)
    longest = Workload(scenario, "").longest_request_tokens(lexicon.template)
    assert longest <= (2048 if name.startswith("demo-") else 8192)


def test_the_example_loads_and_has_ten_lines(tmp_path: Path) -> None:
    path = tmp_path / "support-chat.yaml"
    path.write_text(example(), encoding="utf-8")
    assert load_scenario(str(path), ROOT / "scenarios").name == "support-chat"
    assert len(example().splitlines()) == 10


def test_the_errors_shown_are_the_errors_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broken = example().replace("[2, 6]", "[6, 2]").replace("user_tokens: ", "user_token: ")
    Path("support-chat.yaml").write_text(broken, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        load_scenario("support-chat.yaml", ROOT / "scenarios")
    shown = section("Errors").split("```\n")[1].strip().splitlines()
    assert set(shown) <= set(str(caught.value).splitlines())
