"""What came of the sharing and the pressure that a scenario asks for, in numbers and in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.achieved import Achieved, achieved
from harness.analysis.steps import Steps
from harness.analysis.working_set import InUse
from tests.analysis.rows import target

STEPS = Steps(3, 1_000, 659, 0, 0, 0, 0, 659, None, None)
WINDOWS = [InUse(number, number, number + 1, tokens, 0) for number, tokens in enumerate([500, 1_930, 0])]


def found(scenario: dict[str, Any], windows: list[InUse] = WINDOWS, **identity: Any) -> Achieved:
    return achieved(scenario, target(identity={"engine": "e", **identity}), STEPS, windows)


@pytest.mark.parametrize(
    ("sharing", "asked"),
    [
        (None, None),
        (0.9, 0.9),
        ({"share": 0.75, "sessions": 20, "fan_out": 1, "popularity": "uniform"}, 0.75),
        ([{"name": "tenant", "fan_out": 8, "tokens": 100}], None),
    ],
    ids=["nothing", "a number", "a share", "levels"],
)
def test_sharing_is_shareable_by_prompt_tokens_beside_the_share_asked_for(sharing: Any, asked: float | None) -> None:
    one = found({"sharing": sharing})
    assert (one.sharing, one.sharing_asked) == (0.659, asked)
    words = next(one.sentences())
    assert words == "Sharing achieved: 65.9 % of all prompt tokens" + (
        "" if asked is None else f" (asked for: {asked:.1%})".replace("%", " %")
    )


def test_pressure_is_the_largest_working_set_by_the_kv_capacity() -> None:
    one = found({"pressure": 2.0, "capacity_tokens": 1_000}, capacity_tokens=1_000)
    assert (one.working_set_tokens, one.pressure, one.pressure_asked) == (1_930, 1.93, 2.0)
    assert list(one.sentences())[1] == (
        "Pressure achieved: 1.93, 1,930 tokens of working set on 1,000 tokens of KV capacity (asked for: 2)"
    )


def test_a_larger_target_has_less_pressure_than_was_asked_for_of_the_least() -> None:
    one = found({"pressure": 2.0, "capacity_tokens": 1_000}, capacity_tokens=4_000)
    assert list(one.sentences())[1].endswith("4,000 tokens of KV capacity (asked for: 2 on 1,000 tokens)")


def test_replicas_have_the_capacity_of_all() -> None:
    two = target(identity={"capacity_tokens": 500}, target={"metrics_urls": ["http://a/metrics", "http://b/metrics"]})
    assert achieved({}, two, STEPS, WINDOWS).pressure == 1.93


def test_without_a_capacity_of_the_target_that_of_the_scenario_counts() -> None:
    assert found({"capacity_tokens": 1_000}).pressure == 1.93


def test_without_any_capacity_the_working_set_stands_alone() -> None:
    one = found({}, unknown={"capacity_tokens": "no page tells it"})
    assert (one.pressure, one.capacity_tokens) == (None, None)
    assert list(one.sentences())[1] == (
        "Largest working set: 1,930 tokens; pressure is not known, as the KV capacity is not known: no page tells it"
    )


def test_a_run_without_measured_requests_achieved_nothing_that_is_known() -> None:
    none = achieved({"sharing": 0.9, "pressure": 2.0}, target(), None, [])
    assert (none.sharing, none.working_set_tokens, none.pressure) == (None, None, None)
    assert list(none.sentences()) == []
    assert list(replace(none, sharing=0.5).sentences()) == [
        "Sharing achieved: 50.0 % of all prompt tokens (asked for: 90.0 %)"
    ]
