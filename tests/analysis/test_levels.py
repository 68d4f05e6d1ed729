"""The waterfall by level: intervals of prompts cut at the borders of levels, by hand and token by token."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.levels import by_level
from harness.analysis.request_log import read_log
from harness.analysis.steps import LOSSES, Steps
from harness.analysis.waterfall import Waterfall, waterfall
from tests.analysis.rows import Row
from tests.analysis.waterfall_rows import LLAMA_CPP, SGLANG, VLLM, sent, target_run

HEAD, ROOT, RED, BLUE, Q1, Q2, Q3, STAMP = range(8)
NAMES = {HEAD: "chat template", ROOT: "platform", RED: "tenant", BLUE: "tenant", STAMP: "arrangement fault"}


def asked(path: list[tuple[int, int]], *times: int, **changes: Any) -> Row:
    levels = [NAMES.get(identity, "user message") for identity, _ in path]
    return sent(path, *times, path_levels=levels, **changes)


def fall_of(rows: list[Row], identity: dict[str, Any]) -> Waterfall:
    run = target_run(rows, identity)
    return waterfall(read_log(run), run.target)


def levels_of(rows: list[Row], identity: dict[str, Any]) -> dict[str | int | None, Steps]:
    return {part.key: part.steps for part in fall_of(rows, identity).by_level}


def to_red(question: int, *times: int, **changes: Any) -> Row:
    return asked([(HEAD, 4), (ROOT, 50), (RED, 30), (question, 20)], *times, **changes)


def to_blue(question: int, *times: int, **changes: Any) -> Row:
    return asked([(HEAD, 4), (ROOT, 50), (BLUE, 30), (question, 20)], *times, **changes)


def test_each_level_has_what_lies_between_its_borders() -> None:
    # The second shares head, root and tenant with the first (84), the third head and root (54).
    levels = levels_of([to_red(Q1, 0), to_red(Q2, 10), to_blue(Q3, 20)], SGLANG)
    assert list(levels) == ["chat template", "platform", "tenant", "user message"]
    assert [steps.requests for steps in levels.values()] == [3, 3, 3, 3]
    assert [steps.prompt_tokens for steps in levels.values()] == [12, 150, 90, 60]
    assert [steps.shareable for steps in levels.values()] == [8, 100, 30, 0]
    assert [steps.expected for steps in levels.values()] == [8, 100, 30, 0]


def test_what_blocks_cost_lies_where_the_hit_ends() -> None:
    # 84 tokens are 5 blocks of 16, and 4 tokens of the tenant; 54 are 3, and 6 of the root.
    levels = levels_of([to_red(Q1, 0), to_red(Q2, 10), to_blue(Q3, 20)], VLLM | {"capacity_tokens": 1_600})
    assert [steps.granularity for steps in levels.values()] == [0, 6, 4, 0]


def test_what_is_evicted_is_evicted_from_the_levels_at_the_end() -> None:
    rows = [to_red(Q1, 0), asked([(Q2, 100)], 10), to_red(Q1, 20)]
    levels = levels_of(rows, LLAMA_CPP | {"slots": 1})
    # The only slot holds the second prompt by then. The last token of the third would be computed anyway.
    assert [steps.capacity for steps in levels.values()] == [4, 50, 30, 19]
    assert [steps.granularity for steps in levels.values()] == [0, 0, 0, 1]


def test_more_than_was_expected_is_below_zero_in_the_levels_that_were_found() -> None:
    rows = [to_red(Q1, 0, cached_tokens=60), to_blue(Q2, 10, cached_tokens=20)]
    levels = levels_of(rows, SGLANG)
    assert [steps.measured for steps in levels.values()] == [8, 66, 6, 0]
    assert [steps.unexplained for steps in levels.values()] == [-4, -16, -6, 0]


def test_more_than_the_prompt_has_counts_to_its_last_level() -> None:
    levels = levels_of([to_red(Q1, 0, cached_tokens=110)], SGLANG)
    assert [steps.measured for steps in levels.values()] == [4, 50, 30, 26]


def test_levels_stand_as_in_the_prompts_and_count_the_requests_that_have_them() -> None:
    late = asked([(HEAD, 4), (STAMP, 6), (ROOT, 44), (RED, 30), (Q3, 20)], 20)
    levels = levels_of([to_red(Q1, 0), asked([(HEAD, 4), (ROOT, 50), (Q2, 9)], 10), late], SGLANG)
    requests = {level: steps.requests for level, steps in levels.items()}
    assert requests == {
        "chat template": 3, "arrangement fault": 1, "platform": 3, "tenant": 2, "user message": 3,
    }  # fmt: skip
    assert list(requests) == ["chat template", "arrangement fault", "platform", "tenant", "user message"]


def test_a_level_that_stands_in_several_places_is_one() -> None:
    again = asked([(HEAD, 4), (ROOT, 50), (HEAD, 3), (RED, 30), (HEAD, 2)], 10)
    levels = levels_of([to_red(Q1, 0), again], SGLANG)
    assert (levels["chat template"].requests, levels["chat template"].prompt_tokens) == (2, 4 + 9)


def test_steps_that_are_not_known_are_not_known_of_any_level() -> None:
    levels = levels_of([to_red(Q1, 0), to_red(Q2, 10)], {"engine": "openai", "model": "m"})
    assert {(steps.capacity, steps.routing, steps.measured, steps.unexplained) for steps in levels.values()} == {
        (None, None, None, None)
    }
    assert sum(steps.expected for steps in levels.values()) == 84


def test_a_run_that_did_not_record_levels_has_none() -> None:
    assert fall_of([sent([(ROOT, 50)], 0), sent([(ROOT, 50)], 10)], SGLANG).by_level == ()
    assert fall_of([to_red(Q1, 0), sent([(ROOT, 50)], 10)], SGLANG).by_level == ()
    assert fall_of([], SGLANG).by_level == ()


PATHS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), min_size=1, max_size=6)


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Requests with prefixes that need not get shorter from step to step."""
    rows = []
    for _ in range(draw(st.integers(1, 8))):
        path = draw(PATHS)
        total = sum(tokens for _, tokens in path)
        hits = draw(st.lists(st.integers(0, total), min_size=5, max_size=5))
        hits.append(draw(st.integers(0, total + 5)))
        losses = dict(zip(LOSSES, (one - other for one, other in pairwise(hits)), strict=True))
        row = {"path_tokens": [tokens for _, tokens in path], "path_levels": [name for name, _ in path]}
        rows.append(row | losses | {"prompt_tokens": total, "shareable": hits[0], "hits": hits})
    return pd.DataFrame(rows)


@settings(max_examples=200, deadline=None)
@given(rows=tables())
def test_the_levels_are_those_of_each_token(rows: pd.DataFrame) -> None:
    wanted: dict[str, dict[str, int]] = {}
    steps = ("prompt_tokens", "shareable", "found", "measured", *LOSSES)
    for row in rows.to_dict("records"):
        tokens = [
            name for name, count in zip(row["path_levels"], row["path_tokens"], strict=True) for _ in range(count)
        ]
        tokens += tokens[-1:] * 5  # an engine may report some more
        hits = row["hits"]
        for level in set(tokens):
            sums = wanted.setdefault(level, dict.fromkeys(steps, 0))
            within = [tokens[:hit].count(level) for hit in hits]
            sums["prompt_tokens"] += tokens[: row["prompt_tokens"]].count(level)
            sums["shareable"] += within[0]
            sums["found"] += within[-2]
            sums["measured"] += within[-1]
            for name, one, other in zip(LOSSES, within, within[1:], strict=False):
                sums[name] += one - other
    found = {str(part.key): part.steps for part in by_level(rows, {})}
    assert found.keys() == wanted.keys()
    for level, steps_of_level in found.items():
        sums = wanted[level]
        assert steps_of_level.expected == sums.pop("found")
        assert {name: getattr(steps_of_level, name) for name in sums} == sums
        assert steps_of_level.requests == sum(level in names for names in rows["path_levels"])
