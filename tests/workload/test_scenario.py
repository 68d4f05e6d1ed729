from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import ScenarioError
from harness.workload.scenario import LongDocument, Scenario, load_scenario, scenario_names, scenario_schema

SHIPPED = Path(__file__).parents[2] / "scenarios"

GOOD = {
    "name": "mine",
    "kind": "multi-round",
    "rounds": "3",
    "user_tokens": "{uniform: [5, 9]}",
    "output_tokens": "4",
}
DOCUMENTS = {
    "name": "mine",
    "kind": "long-document",
    "documents": "3",
    "document_tokens": "90",
    "questions": "2",
    "question_tokens": "9",
    "output_tokens": "4",
}


def write(folder: Path, **keys: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()), encoding="utf-8")
    return path


def complaint(path: Path | str, folder: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(str(path), folder)
    return str(caught.value)


@pytest.mark.parametrize("name", scenario_names(SHIPPED))
def test_every_shipped_scenario_loads_under_its_own_name(name: str) -> None:
    scenario = load_scenario(name, SHIPPED)
    assert scenario.name == name
    assert scenario.description


def test_there_is_a_full_and_a_demo_scenario_of_each_kind() -> None:
    kinds = ["agent-loop", "long-document", "multi-round"]
    for kind in kinds:
        assert load_scenario(kind, SHIPPED).kind == load_scenario(f"demo-{kind}", SHIPPED).kind == kind


@pytest.mark.parametrize("name", scenario_names(SHIPPED))
def test_a_scenario_survives_the_way_to_a_worker_as_json(name: str) -> None:
    scenario = load_scenario(name, SHIPPED)
    text = scenario.to_json()
    assert json.loads(text)["kind"] == scenario.kind
    assert Scenario.from_json(text) == scenario


def test_a_scenario_is_found_by_name_or_by_path(tmp_path: Path) -> None:
    path = write(tmp_path, **GOOD)
    assert load_scenario("mine", tmp_path) == load_scenario(str(path), SHIPPED)


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    write(tmp_path, **GOOD)
    message = complaint("yours", tmp_path)
    assert '"yours"' in message
    assert f"{tmp_path} (known there: mine)" in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert str(missing) in complaint(missing, tmp_path)


def test_a_misspelt_key_is_told_with_its_line_and_the_right_one(tmp_path: Path) -> None:
    path = write(tmp_path, **GOOD, user_token="5")
    message = complaint(path, tmp_path)
    assert f"{path}, line 6, key user_token" in message
    assert "did you mean user_tokens?" in message


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    assert "line 6, key steps: unknown key" in complaint(write(tmp_path, **GOOD, steps="3"), tmp_path)


def test_an_unknown_kind_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    message = complaint(write(tmp_path, **GOOD | {"kind": "chat"}), tmp_path)
    assert "line 2, key kind" in message
    assert "agent-loop or long-document or multi-round" in message
    assert '"chat"' in message


def test_a_missing_key_is_named_with_what_it_should_be(tmp_path: Path) -> None:
    message = complaint(write(tmp_path, **{key: GOOD[key] for key in GOOD if key != "rounds"}), tmp_path)
    assert "key rounds: missing; expected a whole number of at least 1" in message


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("0", "key rounds: expected a whole number of at least 1"),
        ("-3", "found -3"),
        ("2.5", "found 2.5"),
        ("true", "found true"),
        ("many", "key rounds: expected a whole number, {uniform: [a, b]} or {lognormal:"),
        ("{zipf: 1.1}", "key rounds: expected a whole number, {uniform: [a, b]} or {lognormal:"),
        ("{uniform: [9, 5]}", "key rounds.uniform: the smallest value (9) must not be above the largest (5)"),
        ("{uniform: [0, 5]}", "key rounds.uniform[0]: expected a whole number of at least 1, found 0"),
        ("{lognormal: {median: 5, sigma: 1}}", "key rounds.lognormal.max: missing"),
        ("{lognormal: {median: 5, sigma: 1, min: 9, max: 8}}", "the smallest value (9) must not be above"),
    ],
)
def test_a_wrong_length_is_told_at_its_key(tmp_path: Path, value: str, told: str) -> None:
    message = complaint(write(tmp_path, **GOOD | {"rounds": value}), tmp_path)
    assert "line 3" in message
    assert told in message


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("-1", "found -1"),
        ("soon", "expected seconds, {uniform: [a, b]} or {exponential: {mean: m, max: b}}"),
        ("{exponential: {mean: 0, max: 3}}", "key think_time_s.exponential.mean: expected a number above 0, found 0"),
    ],
)
def test_a_wrong_pause_is_told_at_its_key(tmp_path: Path, value: str, told: str) -> None:
    assert told in complaint(write(tmp_path, **GOOD, think_time_s=value), tmp_path)


def test_a_name_that_cannot_name_a_directory_is_refused(tmp_path: Path) -> None:
    assert "key name" in complaint(write(tmp_path, **GOOD | {"name": "a/b"}), tmp_path)


@pytest.mark.parametrize(
    ("value", "told"),
    [("zipf", "key popularity: expected uniform"), ("{zipf: 0}", "key popularity.zipf: expected a number above 0")],
)
def test_a_wrong_popularity_is_told_at_its_key(tmp_path: Path, value: str, told: str) -> None:
    assert told in complaint(write(tmp_path, **DOCUMENTS, popularity=value), tmp_path)


LEVEL = "{name: a, fan_out: 2, tokens: 9}"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("1.5", "key sharing: expected a number above 0 and below 1 or a mapping or a list of at least 1, found 1.5"),
        ("1", "key sharing: expected a number above 0 and below 1 or"),
        ("much", "expected a number between 0 and 1, {share: s, ...} or a list of levels, each with name"),
        ("true", "key sharing: expected a number between 0 and 1, {share: s, ...} or a list of levels"),
        ("{share: 0}", "key sharing.share: expected a number above 0 and below 1, found 0"),
        ("{sessions: 5}", "key sharing.share: missing; expected a number above 0 and below 1"),
        ("{share: 0.9, fanout: 5}", "key sharing.fanout: unknown key; did you mean fan_out?"),
        ("[]", "or a list of at least 1, found a list"),
        (
            "[{name: a, fan_out: 0, tokens: 9}]",
            "key sharing[0].fan_out: expected a whole number of at least 1, found 0",
        ),
        (
            f"[{LEVEL}, {{name: b, fan_out: 2}}]",
            "key sharing[1].tokens: missing; expected a whole number of at least 1",
        ),
        ("[{name: a, fan_out: 2, token: 9, tokens: 9}]", "key sharing[0].token: unknown key; did you mean tokens?"),
        (f"[{LEVEL}, {LEVEL}]", "key sharing: two levels are called a; each needs a name of its own"),
        (
            "[{name: a, fan_out: 2, tokens: 9, tenant: true}, {name: b, fan_out: 2, tokens: 9, tenant: true}]",
            "key sharing: the levels a and b are both the tenant's; at most one can be",
        ),
    ],
)
def test_a_wrong_sharing_is_told_at_its_key(tmp_path: Path, value: str, told: str) -> None:
    message = complaint(write(tmp_path, **GOOD, sharing=value), tmp_path)
    assert "line 6" in message
    assert told in message


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"fault": "{kind: timestamp}"}, "key fault.kind: expected one of timestamp-first, request-id-first, "),
        (
            {"fault": "{kind: timestamp-first, rate: 1.5}"},
            "key fault.rate: expected a number of at least 0 and of at most",
        ),
        (
            {"fault": "{kind: tools-shuffled}"},
            "key fault: tools-shuffled makes no sense for this kind of scenario; give timestamp-first or",
        ),
        ({"fault": "{kind: preamble-first}"}, "the fault preamble-first needs a preamble; give preamble_tokens"),
        (
            {"fault": "{kind: preamble-first}", "preamble_tokens": "9"},
            "the fault preamble-first needs parts to move before; give system_tokens or sharing",
        ),
        ({"pressure": "0"}, "key pressure: expected a number above 0, found 0"),
        ({"capacity_tokens": "1000"}, "capacity_tokens has no effect without pressure; give both or none"),
    ],
)
def test_a_fault_or_pressure_that_cannot_be_is_refused(tmp_path: Path, keys: dict[str, str], told: str) -> None:
    assert told in complaint(write(tmp_path, **GOOD, **keys), tmp_path)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"fault": "{kind: passages-reranked}"}, "the fault passages-reranked moves parts of documents of words only"),
        ({"order": "tiled"}, "key order: expected one of random, interleave, tile"),
        (
            {"order": "tile", "popularity": "{zipf: 1}"},
            "with order: tile all documents are as popular; leave popularity",
        ),
    ],
)
def test_what_documents_cannot_have_is_refused(tmp_path: Path, keys: dict[str, str], told: str) -> None:
    assert told in complaint(write(tmp_path, **DOCUMENTS, **keys), tmp_path)


def test_documents_are_counted_by_number_or_by_pressure(tmp_path: Path) -> None:
    keys = {key: value for key, value in DOCUMENTS.items() if key != "documents"}
    assert "documents is missing; give how many documents there are, or pressure" in complaint(
        write(tmp_path, **keys), tmp_path
    )
    assert load_scenario(str(write(tmp_path, **keys, pressure="2.0")), tmp_path).pressure == 2.0


def test_tools_have_to_be_there_to_be_shuffled(tmp_path: Path) -> None:
    keys = {"kind": "agent-loop", "task_tokens": "9", "steps": "2", "observation_tokens": "9", "output_tokens": "4"}
    fault = {"name": "mine", **keys, "fault": "{kind: tools-shuffled}"}
    assert "the fault tools-shuffled needs tools; give tools_tokens" in complaint(write(tmp_path, **fault), tmp_path)
    assert load_scenario(str(write(tmp_path, **fault, tools_tokens="9")), tmp_path).fault_kind == "tools-shuffled"


def test_a_corpus_path_is_relative_to_the_scenario_file(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("some text", encoding="utf-8")
    scenario = load_scenario(str(write(tmp_path, **DOCUMENTS, corpus="notes.txt")), SHIPPED)
    assert isinstance(scenario, LongDocument)
    assert Path(scenario.corpus) == tmp_path / "notes.txt"


def test_a_corpus_that_is_not_there_is_named(tmp_path: Path) -> None:
    message = complaint(write(tmp_path, **DOCUMENTS, corpus="nowhere"), tmp_path)
    assert "key corpus" in message
    assert str(tmp_path / "nowhere") in message


def test_the_editors_schema_describes_every_key() -> None:
    models = {
        name: model
        for name, model in scenario_schema()["$defs"].items()
        if {"kind", "fan_out"} & set(model["properties"])
    }
    assert set(models) == {"AgentLoop", "LongDocument", "MultiRound", "Replay", "Fault", "Level", "Share"}
    undescribed = [
        f"{name}.{key}"
        for name, model in models.items()
        for key, field in model["properties"].items()
        if not field.get("description")
    ]
    assert undescribed == []
