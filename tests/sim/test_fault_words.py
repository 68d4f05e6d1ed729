"""What --fault and X-Sim-Fault take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import InputError
from harness.sim.faults import KINDS, Fault, parse


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("stall", Fault("stall", 5.0)),
        (" stall:0.5@0.25 ", Fault("stall", 0.5, 0.25)),
        ("no-done@.1", Fault("no-done", 0.0, 0.1)),
        ("429:30", Fault("429", 30.0)),
        ("clock-skew:-60", Fault("clock-skew", -60.0)),
        ("reset:0", Fault("reset", 0.0)),
    ],
)
def test_a_fault_is_a_kind_with_a_value_and_a_share(text: str, fault: Fault) -> None:
    assert parse(text) == fault


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not kind, kind:value or kind:value@share"),
        ("stall:", "is not kind, kind:value or kind:value@share"),
        ("flood", "There is no fault 'flood': choose one of loading, "),
        ("no-done:3", "no-done takes no value"),
        ("stall:-1", "stall needs a value of 0 or more"),
        ("tokens-per-chunk:0", "tokens-per-chunk needs a value of 1 or more"),
        ("stall@0", "stall needs a share above 0, at most 1"),
        ("stall@1.5", "stall needs a share above 0, at most 1"),
        ("loading:3@0.5", "loading is not one of requests"),
    ],
)
def test_what_is_no_fault_is_told_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse(text)


def test_every_kind_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text()
    (table,) = re.findall(r"^\| fault \|.*\n(?:\|.*\n)+", page, re.MULTILINE)
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()[2:]]
    listed = {kind: values for kinds, values in rows for kind in re.findall(r"`([^`]+)`", kinds)}
    assert list(listed) == list(KINDS)
    for kind, values in listed.items():
        default = KINDS[kind].value
        assert values == "" if default is None else f"({default:g})" in values
