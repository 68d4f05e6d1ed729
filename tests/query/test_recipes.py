"""Every recipe of docs/analysis.md says what can be worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.query.answer import Answer
from harness.query.views import connect
from harness.record.reader import open_run

PAGE = (Path(__file__).parents[2] / "docs" / "analysis.md").read_text()
RECIPES = dict(re.findall(r"^### (\d+)\. .*?```sql\n(.*?)```", PAGE, flags=re.MULTILINE | re.DOTALL))

EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    # of 70, 100, 120 and of 44, 50, 160: rank 2 · 0.9 = 1.8
    "1": [("cold", 3, 100, 116, 119.6), ("warm", 3, 50, 138, 157.8)],
    "2": [(0, 3, 0, 2 / 3), (1, 2, 1360 / 1900, 1), (2, 2, 0, 1 / 2)],
    "3": [("hit", 2, 47, 49.4), ("miss", 3, 120, 152), ("unreported", 1, 100, 100)],
    "4": [(100, 20, 1, 5)],
    "5": [(0, 1, 0), (2, 2, 960 / 1700), (4, 2, 400 / 700), (6, 1, None), (8, 1, 0)],
    "6": [(0, 2, 1400, 0, 1200, 4)],
    "7": [("r1", "t", 0.6, 30)],
    "8": [(7, 1, 160, float("inf"), "too slow")],
    # sent at 101, 102 | 103, 104, 105 | 108; the one at 106 failed
    "9": [(1, 3, 120), (2, 3, 50)],
    "10": [("0.5", "e", 7, 1360 / 4800, 85), ("2.0", "e", 7, 1360 / 4800, 85)],
}


def test_there_are_ten() -> None:
    assert list(RECIPES) == list(EXPECTED)


@pytest.mark.parametrize("number", EXPECTED)
def test_a_recipe_answers_what_it_promises(number: str, record: Callable[..., Path]) -> None:
    paths = [record()]
    if number == "10":
        paths.append(record("r2", scenario={"pressure": 2.0}))
    with connect([open_run(path) for path in paths]) as connection:
        answer = Answer(connection, RECIPES[number])
        rows = [tuple(row.values()) for batch in answer.batches() for row in batch.to_pylist()]

    assert rows == [
        tuple(pytest.approx(cell) if isinstance(cell, int | float) else cell for cell in row)
        for row in EXPECTED[number]
    ]


def test_the_page_lists_the_columns_of_every_view(record: Callable[..., Path]) -> None:
    listed = {
        name: re.findall(r"`(\w+)`", columns)
        for name, _, columns in re.findall(r"^\| `(\w+)` \| (.*?) \| (`run_id`.*) \|$", PAGE, re.MULTILINE)
    }
    with connect([open_run(record())]) as connection:
        views = {name for (name,) in connection.sql("SHOW TABLES").fetchall()}
        assert views == set(listed) | {"requests", "counted", "server_metrics", "harness_health"}
        for name, columns in listed.items():
            told = [column for column in columns if column != "reporting" or name != "sessions"]
            found = [column for column in connection.sql(f"FROM {name}").columns if column != "reporting"]
            assert found == told, name
