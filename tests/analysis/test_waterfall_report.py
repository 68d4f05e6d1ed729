"""How the report shows the waterfall, to people and to programs."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.analysis import Run
from harness.analysis.report import as_json, render
from harness.analysis.steps import Steps
from harness.analysis.waterfall import Contributor, Waterfall
from tests.analysis.rows import Row, request, target
from tests.analysis.waterfall_rows import SGLANG, VLLM, sent

MakeRun = Callable[..., Run]
TITLE = "Where the hit rate went"


def printed(*runs: Run) -> str:
    out = io.StringIO()
    render(runs, Console(file=out, width=80))
    return out.getvalue()


def herd(**changes: Any) -> list[Row]:
    """1,000 tokens each: two at the same time, one later that hits all but the last token."""
    rows = [sent([(1, 1_000)], 0, 500, 800), sent([(1, 1_000)], 1, 501, 801), sent([(1, 1_000)], 1_000)]
    return [
        row | {"session": number, "turn": 0, "cached_tokens": cached} | changes
        for number, (row, cached) in enumerate(zip(rows, (0, 0, 999), strict=True))
    ]


def section(text: str) -> list[list[str]]:
    """The words of its table's lines."""
    lines = text[text.index(TITLE) :].splitlines()
    return [line.split() for line in lines[1 : lines.index("", 1)]]


def test_the_steps_stand_in_tokens_and_percent_and_the_biggest_loss_in_words(make_run: MakeRun) -> None:
    text = printed(make_run(herd(), targets=[target(identity=SGLANG)]))
    assert section(text)[:9] == [
        ["prompt", "tokens", "3,000", "100.0", "%"],
        ["shareable", "2,000", "66.7", "%"],
        ["-", "granularity", "2", "<0.1", "%"],
        ["-", "in", "flight", "999", "33.3", "%"],
        ["-", "capacity", "0", "0.0", "%"],
        ["-", "routing", "0", "0.0", "%"],
        ["=", "expected", "999", "33.3", "%"],
        ["-", "unexplained", "0", "0.0", "%"],
        ["=", "measured", "999", "33.3", "%"],
    ]
    words = " ".join(text.split())
    assert "Biggest loss: 999 tokens (33.3 % of all prompt tokens), in flight: prompts that were sent while" in words
    assert "As expected, to the token: 3 of 3 requests" in words
    assert "Modelled: SGLang's radix tree, pages of 1 token, room for 10,000 tokens" in words
    assert "than expected, from token" not in words


def test_a_share_that_is_just_below_0_is_told_as_that(make_run: MakeRun) -> None:
    rows = herd()
    rows[0]["cached_tokens"] = 1
    text = printed(make_run(rows, targets=[target(identity=SGLANG)]))
    assert ["-", "unexplained", "-1", ">-0.1", "%"] in section(text)[:9]


def test_what_is_unexplained_names_its_largest_contributors(make_run: MakeRun) -> None:
    rows = herd()
    rows[0]["cached_tokens"], rows[2]["cached_tokens"] = 5, 0
    text = " ".join(printed(make_run(rows, targets=[target(identity=SGLANG)])).split())
    assert "- unexplained 994 33.1 %" in text
    assert "Biggest loss: 999 tokens" in text
    assert "As expected, to the token: 1 of 3 requests" in text
    assert "q1000 (session 2, turn 0): 999 tokens fewer than expected, from token 0 on (0 instead of 999)" in text
    assert "q0 (session 0, turn 0): 5 tokens more than expected, from token 0 on (5 instead of 0)" in text
    more = herd()
    more[0]["cached_tokens"] = 5
    assert "- unexplained -5 -0.2 %" in " ".join(printed(make_run(more, targets=[target(identity=SGLANG)])).split())


def test_targets_stand_side_by_side_with_reasons_for_what_is_not_known(make_run: MakeRun) -> None:
    one, two = herd(target="one"), herd(target="two", cached_tokens=None)
    untold = VLLM | {"unknown": {"capacity_tokens": "no page tells it"}}
    targets = [target("one", identity=SGLANG), target("two", identity=untold)]
    text = printed(make_run([*one, *two], targets=targets))
    lines = section(text)
    assert lines[0] == ["target", "1", "=", "one", "target", "2", "=", "two"]
    assert lines[1] == ["prompt", "tokens", "3,000", "100.0", "%", "3,000", "100.0", "%"]
    assert lines[5][:6] == ["-", "capacity", "0", "0.0", "%", "-"]
    assert lines[7] == ["=", "expected", "999", "33.3", "%", "1,984", "66.1", "%"]
    words = " ".join(text.split())
    assert "] the KV capacity is not known: no page tells it." in words
    assert "] no request reports its cached tokens." in words
    assert "target 2: Modelled: vLLM's block pool, blocks of 16 tokens" in words


def test_there_is_no_section_where_no_prompt_is_known(make_run: MakeRun) -> None:
    run = make_run([request(cached_tokens=1)])
    assert TITLE not in printed(run)
    fall = json.loads(as_json([run]))["runs"][0]["targets"][0]["waterfall"]
    assert (fall["steps"], fall["not_compared"]) == (None, 1)
    assert fall["unknown"] == {"steps": "no measured request was sent whose prompt is known"}


def test_json_has_the_steps_and_their_breakdowns(make_run: MakeRun) -> None:
    run = make_run(herd(), targets=[target(identity=SGLANG)])
    fall = json.loads(as_json([run]))["runs"][0]["targets"][0]["waterfall"]
    steps = {"requests": 3, "prompt_tokens": 3_000, "shareable": 2_000, "granularity": 2, "in_flight": 999}
    steps |= {"capacity": 0, "routing": 0, "expected": 999, "measured": 999, "unexplained": 0}
    assert fall["steps"] == steps
    assert fall["by_kind"] == [{"key": "agent-loop", "steps": steps}]
    assert fall["by_warmth"] == [{"key": "cold", "steps": steps}]
    assert fall["by_turn"] == [{"key": 0, "steps": steps}]
    windows = {part["key"]: part["steps"]["requests"] for part in fall["by_window"]}
    assert windows == {0: 2, 9: 1}
    assert (fall["traffic"], fall["exact"], fall["contributors"], fall["unknown"]) == (3, 3, [], {})


def test_the_page_on_it_does_what_it_says(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(herd(), targets=[target(identity=SGLANG)])
    (tmp_path / "results").mkdir()
    (tmp_path / run.manifest.run_id).rename(tmp_path / "results" / run.manifest.run_id)
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "waterfall.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)

    assert names["fall"].steps.measured == 999
    for field in (*fields(Waterfall), *fields(Steps), *fields(Contributor)):
        assert f"`{field.name}`" in page
