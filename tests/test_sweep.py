"""Sweeps: which values a key takes, and what is refused."""

from __future__ import annotations

import pytest

from harness.errors import InputError
from harness.sweep import MOST_POINTS, values_of


@pytest.mark.parametrize(
    ("over", "key", "values"),
    [
        ("pressure=0.25,0.5, 1,4", "pressure", ["0.25", "0.5", "1", "4"]),
        ("steps=2:10:4", "steps", ["2", "6", "10"]),
        ("pressure=0.1:0.3:0.1", "pressure", ["0.1", "0.2", "0.3"]),
        ("steps=2:9:4", "steps", ["2", "6"]),
        ("order=interleave,tile", "order", ["interleave", "tile"]),
        ("fault.rate=1:1:1", "fault.rate", ["1"]),
    ],
)
def test_a_list_or_steps_with_both_ends(over: str, key: str, values: list[str]) -> None:
    assert values_of(over) == (key, values)


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ("pressure", "key=a,b,c or key=first:last:step"),
        ("=1,2", "expected key="),
        ("pressure=", "expected key="),
        ("pressure=1,,2", "a value is missing"),
        ("pressure=1,2,1", "1 stands there twice"),
        ("pressure=1:2", "three numbers"),
        ("pressure=a:b:c", "three numbers"),
        ("pressure=1:2:0", "above 0"),
        ("pressure=2:1:1", "not below the first"),
        (f"pressure=1:{MOST_POINTS + 1}:1", "too many"),
    ],
)
def test_what_cannot_be_swept_is_told_in_one_sentence(over: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        values_of(over)
