"""How the report shows levels, windows, and what was achieved, to people and to programs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.analysis import Run
from harness.analysis.achieved import Achieved
from harness.analysis.level_table import level_table
from harness.analysis.report import as_json, render
from harness.analysis.steps import Part, Steps
from harness.analysis.summary import summarise
from harness.analysis.tables import Footnotes, Sides
from harness.analysis.working_set import InUse
from harness.workload.session import LEVELS
from tests.analysis.rows import Row, target
from tests.analysis.waterfall_rows import SGLANG, sent

MakeRun = Callable[..., Run]
LEVEL, WINDOW = "By level of the prompts", "Working set over time"


def printed(*runs: Run, width: int = 80) -> str:
    out = io.StringIO()
    render(runs, Console(file=out, width=width))
    return out.getvalue()


def section(text: str, title: str) -> list[list[str]]:
    """The words of the lines below a table's rule, up to the next section's title."""
    lines = text[text.index(title) :].splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("───"))
    return [line.split() for line in lines[rule + 1 : lines.index("", rule)]]


def visits(**changes: Any) -> list[Row]:
    """Three to one tenant, one after the other, with different questions; the last one hits less than it could."""
    rows = []
    for number, cached in enumerate((0, 2_000, 1_500)):
        path = [(1, 1_000), (2, 1_000), (10 + number, 200)]
        row = sent(path, number * 10**9, cached_tokens=cached, session=number, turn=0)
        rows.append(row | {"path_levels": ["platform", "tenant", "user message"]} | changes)
    return rows


def test_each_level_has_a_line_with_the_steps_that_take_something_away(make_run: MakeRun) -> None:
    text = printed(make_run(visits(), targets=[target(identity=SGLANG)]))
    # prompt tokens, shareable, expected, unexplained, measured
    assert section(text, LEVEL) == [
        ["platform", "3,000", "2,000", "2,000", "0", "2,000"],
        ["tenant", "3,000", "2,000", "2,000", "500", "1,500"],
        ["user", "message", "600", "0", "0", "0", "0"],
    ]
    assert "the lines add up to the table above" in " ".join(text.split())


def test_where_all_is_as_expected_it_stands_there_once(make_run: MakeRun) -> None:
    as_expected = [row | {"cached_tokens": hit} for row, hit in zip(visits(), (0, 2_000, 2_000), strict=True)]
    text = printed(make_run(as_expected, targets=[target(identity=SGLANG)]))
    assert section(text, LEVEL)[1] == ["tenant", "3,000", "2,000", "2,000"]
    assert "meas-" in text
    assert "expec-" not in text
    silent = printed(make_run(visits(cached_tokens=None), targets=[target(identity=SGLANG)]))
    assert section(silent, LEVEL)[1] == ["tenant", "3,000", "2,000", "2,000"]
    assert "expec-" in silent
    assert "meas-" not in silent


def test_a_run_that_did_not_record_levels_says_nothing_of_them(make_run: MakeRun) -> None:
    text = printed(make_run(visits(path_levels=None), targets=[target(identity=SGLANG)]))
    assert LEVEL not in text
    assert "By level" not in text
    assert WINDOW in text


def test_windows_stand_with_their_hit_rate_and_working_set(make_run: MakeRun) -> None:
    small = SGLANG | {"capacity_tokens": 2_100}
    run = make_run(visits(), targets=[target(identity=small)], scenario={"sharing": 0.9, "pressure": None})
    text = printed(run)
    # Of 2 s: one window is 0.2 s long. The second request is in window 4, as 1 s lies just below its end.
    assert section(text, WINDOW)[:3] == [
        ["0.0", "to", "0.2", "1", "2,200", "0.0", "%", "0.0", "%", "0.0", "%", "2,000", "0.95"],
        ["0.8", "to", "1.0", "1", "2,200", "90.9", "%", "90.9", "%", "0.0", "%", "2,000", "0.95"],
        ["1.8", "to", "2.0", "1", "2,200", "68.2", "%", "90.9", "%", "0.0", "%", "2,000", "0.95"],
    ]
    words = " ".join(text.split())
    assert "Sharing achieved: 60.6 % of all prompt tokens (asked for: 90.0 %)" in words
    assert "Pressure achieved: 0.952, 2,000 tokens of working set on 2,100 tokens of KV capacity" in words
    assert "It is known by hindsight" in words


def test_columns_that_nobody_knows_are_left_out(make_run: MakeRun) -> None:
    text = printed(make_run(visits(cached_tokens=None), targets=[target(identity={"engine": "openai", "model": "m"})]))
    # seconds, requests, prompt tokens, expected, working set
    assert section(text, WINDOW)[1] == ["0.8", "to", "1.0", "1", "2,200", "90.9", "%", "2,000"]
    assert "hit rate" not in text[text.index(WINDOW) : text.index("Sharing achieved")]
    assert "pressure is not known, as the KV capacity is not known" in " ".join(text.split())


def test_targets_stand_side_by_side(make_run: MakeRun) -> None:
    one, two = visits(target="one"), visits(target="two", cached_tokens=None)
    targets = [target("one", identity=SGLANG), target("two", identity={"engine": "openai", "model": "m"})]
    text = printed(make_run([*one, *two], targets=targets))
    assert section(text, LEVEL)[:2] == [
        ["1", "platform", "3,000", "2,000", "2,000", "0", "2,000"],
        ["2", "platform", "3,000", "2,000", "2,000", "-", "-"],
    ]
    lines = section(text, WINDOW)
    assert [line[:1] for line in lines[:7]] == [["1"]] * 3 + [[]] + [["2"]] * 3
    assert lines[4][-2:] == ["2,000", "-"]
    words = " ".join(text.split())
    assert "target 1: Sharing achieved: 60.6 %" in words
    assert "target 2: Largest working set: 2,000 tokens" in words


def test_even_large_numbers_of_all_steps_fit_into_80_columns(make_run: MakeRun) -> None:
    summary = summarise(make_run(visits(), targets=[target(identity=SGLANG)]).only_target())
    large = Steps(100_000, 99_999_999, 9_999_999, 999_999, 999_999, 999_999, 999_999, 999_999, 999_999, -99_999)
    names = [*LEVELS.values(), "a-level-with-a-name-of-30-char"]
    fall = replace(summary.waterfall, by_level=tuple(Part(name, large) for name in names))
    table = level_table(Sides([replace(summary, waterfall=fall)]), Footnotes())
    out = io.StringIO()
    Console(file=out, width=80).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert "…" not in out.getvalue()
    assert sum("100.0 M" in line and "10,000 k" in line and "-99,999" in line for line in lines) == len(names)


def test_json_has_levels_phases_windows_and_what_was_achieved(make_run: MakeRun) -> None:
    (of_target,) = json.loads(as_json([make_run(visits(), targets=[target(identity=SGLANG)])]))["runs"][0]["targets"]
    fall = of_target["waterfall"]
    assert [(part["key"], part["steps"]["unexplained"]) for part in fall["by_level"]] == [
        ("platform", 0), ("tenant", 500), ("user message", 0),
    ]  # fmt: skip
    assert fall["by_phase"] == [{"key": "measure", "steps": fall["steps"]}]
    assert len(of_target["working_set"]) == 10
    assert set(of_target["working_set"][0]) == {field.name for field in fields(InUse)}
    assert of_target["working_set"][1]["working_set_tokens"] == 2_000
    assert of_target["working_set"][1]["touched_tokens"] == 0
    assert set(of_target["achieved"]) == {field.name for field in fields(Achieved)}
    assert of_target["achieved"]["pressure"] == 0.2


def test_the_page_names_all_levels_and_keys() -> None:
    page = (Path(__file__).parents[2] / "docs" / "waterfall.md").read_text()
    assert set(re.findall(r"`([a-z]+ [a-z]+)`", page)) >= set(LEVELS.values())
    for field in (*fields(Achieved), *fields(InUse)):
        assert f"`{field.name}`" in page
