from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness.errors import InputError, ScenarioError
from harness.yamlfile import load_model


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Level(Strict):
    name: str
    tokens: Annotated[int, Field(ge=1)]


class Closed(Strict):
    kind: Literal["closed"]
    users: Annotated[int, Field(gt=0)]


class Open(Strict):
    kind: Literal["open"]
    rate_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Sessions(Strict):
    turns: Annotated[int, Field(ge=1)] = 1
    order: Literal["tile", "random"] = "tile"
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    length: Annotated[int, Field(ge=1)] | Literal["short"] = 1


class Plan(Strict):
    title: str
    sessions: Sessions = Sessions()
    levels: list[Level] = []
    weights: dict[str, Annotated[float, Field(ge=0)]] = {}
    arrivals: Annotated[Closed | Open, Field(discriminator="kind")] | None = None
    live: bool = False

    @field_validator("title")
    @classmethod
    def _no_slash(cls, title: str) -> str:
        if "/" in title:
            raise ValueError("a title cannot hold a slash")
        return title


def load(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return load_model(path, Plan, ScenarioError)


def refusal(tmp_path: Path, text: str) -> str:
    """The message, without the folder."""
    with pytest.raises(ScenarioError) as caught:
        load(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "")


def test_a_file_becomes_the_model(tmp_path: Path) -> None:
    plan = load(tmp_path, "title: a\nlevels:\n- {name: system, tokens: 100}\narrivals: {kind: open, rate_per_s: 2}\n")
    assert plan == Plan(title="a", levels=[Level(name="system", tokens=100)], arrivals=Open(kind="open", rate_per_s=2))


def test_anchors_and_merge_keys_work_and_own_keys_win(tmp_path: Path) -> None:
    text = "title: a\nlevels:\n- &one {name: system, tokens: 1}\n- {<<: *one, tokens: 2}\n"
    assert [level.tokens for level in load(tmp_path, text).levels] == [1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "title: a\n\nsessions:\n  turns: many\n",
            'plan.yaml, line 4, key sessions.turns: expected a whole number of at least 1, found "many"',
        ),
        (
            "title: a\nsessions:\n  turns: 0\n",
            "plan.yaml, line 3, key sessions.turns: expected a whole number of at least 1, found 0",
        ),
        (
            "title: a\nsessions:\n  turns: 1.5\n",
            "plan.yaml, line 3, key sessions.turns: expected a whole number of at least 1, found 1.5",
        ),
        (
            "title: a\nsessions: {share: 1.5}\n",
            "plan.yaml, line 2, key sessions.share: expected a number of at least 0 and of at most 1, found 1.5",
        ),
        (
            "title: a\nsessions: {order: tiles}\n",
            'plan.yaml, line 2, key sessions.order: expected one of tile, random, found "tiles"',
        ),
        (
            "title: a\nsessions: {length: long}\n",
            'plan.yaml, line 2, key sessions.length: expected a whole number of at least 1 or short, found "long"',
        ),
        (
            "title: a\nlevels:\n- name: system\n  tokens: 1\n- name: tenant\n  tokens: [1]\n",
            "plan.yaml, line 6, key levels[1].tokens: expected a whole number of at least 1, found a list",
        ),
        (
            "title: a\nlevels:\n- name: system\n",
            "plan.yaml, line 3, key levels[0].tokens: missing; expected a whole number of at least 1",
        ),
        ("sessions: {turns: 2}\n", "plan.yaml, line 1, key title: missing; expected text"),
        ("title: 12\n", "plan.yaml, line 1, key title: expected text, found 12; put it in quotes"),
        ("title:\n", "plan.yaml, line 1, key title: expected text, found nothing"),
        ("title: a\nlive: 7\n", "plan.yaml, line 2, key live: expected true or false, found 7"),
        ("title: a\nlevels: many\n", 'plan.yaml, line 2, key levels: expected a list, found "many"'),
        ("title: a\nsessions: 3\n", "plan.yaml, line 2, key sessions: expected a mapping, found 3"),
        ("title: a\nweights: {x: -1}\n", "plan.yaml, line 2, key weights.x: expected a number of at least 0, found -1"),
        (
            "title: a\nweights:\n  2026: 1\n",
            "plan.yaml, line 3, key weights.2026: this key is read as a number, date or truth value; put it in quotes",
        ),
        ("title: a/b\n", "plan.yaml, line 1, key title: a title cannot hold a slash"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_what_was_expected(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: a\nsesions: {}\n", "line 2, key sesions: unknown key; did you mean sessions?"),
        ("title: a\nsessions:\n  turn: 3\n", "line 3, key sessions.turn: unknown key; did you mean turns?"),
        (
            "title: a\nsessions:\n  xyz: 3\n",
            "line 3, key sessions.xyz: unknown key; known here: turns, order, share, length",
        ),
    ],
)
def test_an_unknown_key_gets_the_nearest_known_one(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text) == f"plan.yaml, {message}"


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ("{kind: burst}", 'key arrivals.kind: expected closed or open, found "burst"'),
        ("{users: 3}", "key arrivals.kind: missing; expected closed or open"),
        ("{kind: open}", "key arrivals.rate_per_s: missing; expected a number above 0"),
        ("{kind: open, rate_per_s: 0}", "key arrivals.rate_per_s: expected a number above 0, found 0"),
        ("{kind: open, rate_per_s: .inf}", "key arrivals.rate_per_s: expected a finite number"),
        ("{kind: open, rate_per_s: 1, user: 3}", "key arrivals.user: unknown key; known here: kind, rate_per_s"),
    ],
)
def test_alternatives_told_apart_by_a_kind_are_checked_as_that_kind(
    tmp_path: Path, arrivals: str, message: str
) -> None:
    assert refusal(tmp_path, f"title: a\narrivals: {arrivals}\n") == f"plan.yaml, line 2, {message}"


def test_several_problems_come_in_the_order_of_the_file_five_at_most(tmp_path: Path) -> None:
    lines = refusal(tmp_path, "live: 7\ntitle: 1\na: 1\nb: 2\nc: 3\nd: 4\ne: 5\n").split("\n")
    assert [line.split(":")[0] for line in lines[:5]] == [
        "plan.yaml, line 1, key live",
        "plan.yaml, line 2, key title",
        "plan.yaml, line 3, key a",
        "plan.yaml, line 4, key b",
        "plan.yaml, line 5, key c",
    ]
    assert lines[5:] == ["plan.yaml: 2 more like these"]


def test_a_key_that_stands_twice_is_refused_not_overwritten(tmp_path: Path) -> None:
    text = "title: a\nlevels:\n- name: system\n  tokens: 1\n  tokens: 2\n"
    assert refusal(tmp_path, text) == "plan.yaml, line 5, key levels[0].tokens: stands here again, after line 4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title: a\nsessions:\n\tturns: 1\n", "plan.yaml, line 3: a tab cannot indent YAML; use spaces"),
        ("title: a\n b: c\n", "plan.yaml, line 2: not valid YAML: mapping values are not allowed here"),
        ("title: [a\n", "plan.yaml, line 2: not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("title: !!python/name:os.system x\n", "plan.yaml, line 1: not valid YAML: could not determine"),
        ("title: 2026-02-30\n", "plan.yaml: a value cannot be read: day "),
        ("", "plan.yaml: expected a mapping (lines of `key: value`), found nothing"),
        ("- a\n- b\n", "plan.yaml: expected a mapping (lines of `key: value`), found a list"),
        ("just text\n", 'plan.yaml: expected a mapping (lines of `key: value`), found "just text"'),
        ("title: a\n---\ntitle: b\n", "plan.yaml, line 2: not valid YAML: but found another document"),
    ],
)
def test_what_is_no_yaml_mapping_gets_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text).startswith(message)
    assert "\n" not in refusal(tmp_path, text)


def test_a_mapping_within_itself_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "title: a\nsessions: &s {turns: *s}\n").startswith("plan.yaml, line 2, key sessions.turns")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"title: \xe9\n")
    for name, message in (
        ("none.yaml", "there is no such file"),
        ("", "cannot be read: Is a directory"),
        ("latin.yaml", "not a text file in UTF-8"),
    ):
        with pytest.raises(InputError) as caught:
            load_model(tmp_path / name, Plan, InputError)
        assert str(caught.value) == f"{tmp_path / name}: {message}"
