"""What tells runs apart: the keys that were set, each with its value in each run."""

from __future__ import annotations

from typing import Any

import pytest

from harness.analysis.swept import Swept, swept
from harness.record.manifest import Manifest


def manifest(scenario: dict[str, Any] | None = None, name: str = "demo", **options: Any) -> Manifest:
    return Manifest(
        kvswarm_version="0.1.0", run_id="r", started_ns=0, options=options, scenario_name=name,
        scenario=scenario or {}, targets=[], versions={},
    )  # fmt: skip


def told(found: Swept | None) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    assert found is not None
    return found.keys, found.values


@pytest.mark.parametrize(
    ("runs", "keys", "values"),
    [
        ([{"rate": "2", "load": "open"}, {"rate": "4.0", "load": "open"}], ("rate",), (("2",), ("4",))),
        ([{"users": 4}, {"users": 16}], ("users",), (("4",), ("16",))),
        ([{"arrivals": "poisson"}, {"arrivals": "gamma:4"}], ("arrivals",), (("poisson",), ("gamma:4",))),
        ([{"changes": "seed=1; steps=2"}, {"changes": "seed=1; steps=08"}], ("steps",), (("2",), ("8",))),
        (
            [{"changes": "pressure=1; steps=2"}, {"changes": "pressure=2; steps=4"}],
            ("pressure", "steps"),
            (("1", "2"), ("2", "4")),
        ),
        (
            [{"changes": "fault=null"}, {"changes": "fault.kind=timestamp-first; fault.rate=1"}],
            ("fault",),
            (("none",), ("timestamp-first, 1",)),
        ),
    ],
)
def test_the_keys_that_differ_and_their_values(runs: Any, keys: Any, values: Any) -> None:
    assert told(swept([manifest(**options) for options in runs])) == (keys, values)


def test_a_run_that_was_not_told_has_what_its_scenario_has() -> None:
    runs = [manifest({"steps": 6}), manifest({"steps": 8}, changes="steps=8"), manifest({}, changes="steps=9")]
    assert told(swept(runs)) == (("steps",), (("6",), ("8",), ("9",)))
    assert told(swept([manifest(), manifest(changes="steps=9")]))[1] == (("as the scenario has it",), ("9",))


def test_users_that_follow_from_the_scenario_are_no_key_of_their_own() -> None:
    runs = [manifest({"pressure": p, "running_sessions": n}, users=n) for p, n in ((0.5, 4), (2.0, 16))]
    assert told(swept(runs)) == (("pressure",), (("0.5",), ("2",)))


def test_runs_that_are_no_sweep() -> None:
    assert swept([manifest(users=4), manifest(users=4)]) is None
    assert swept([manifest(users=4), manifest(users=8, name="other")]) is None
    assert swept([manifest(users=4)]) is None


def test_numbers_are_those_of_one_key() -> None:
    of_users = swept([manifest(users=4), manifest(users=8)])
    assert of_users is not None
    assert of_users.numbers == (4.0, 8.0)
    for runs in ([{"changes": "order=tile"}, {"changes": "order=random"}], [{"users": 1, "rate": 1}, {"users": 2}]):
        found = swept([manifest(**options) for options in runs])
        assert found is not None
        assert found.numbers is None
