"""Whatever was sent, the steps add up to the token, and each is what it says; on logs that hypothesis makes."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.analysis.expected import expect, replay
from harness.analysis.expected_endless import Endless
from harness.analysis.expected_engines import engine_cache
from harness.analysis.request_log import LoggedRequest, read_log
from harness.analysis.steps import Steps
from harness.analysis.waterfall import waterfall
from harness.cache.base import CacheModel
from harness.cache.block_pool import BlockPool
from harness.cache.entries import Entries
from harness.cache.prompt import common_tokens, items
from harness.cache.radix import RadixTree
from tests.analysis.rows import Row, target
from tests.analysis.waterfall_rows import LLAMA_CPP, MLX_LM, SGLANG, VLLM, sent, target_run

WORDS = 2
"""So few that half of all texts have their first word in common."""
ENGINES: dict[str, dict[str, Any]] = {
    "vllm": VLLM | {"granularity_tokens": 4, "capacity_tokens": 160},
    "sglang": SGLANG | {"capacity_tokens": 200},
    "sglang in pages": SGLANG | {"granularity_tokens": 4, "capacity_tokens": 200},
    "llama-cpp": LLAMA_CPP,
    "mlx-lm": MLX_LM | {"details": {"prompt_cache_size": "3"}},
    "openai": {"engine": "openai", "model": "m"},
}
SEGMENTS = st.sampled_from([(identity, 5 + 11 * (identity % 5)) for identity in range(-2, 6)])
MOMENTS = st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 30))

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Each example is a run's table."""


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    rows = []
    for number in range(draw(st.integers(1, 14))):
        t_send, more, most = draw(MOMENTS)
        ok = draw(st.integers(0, 5)) > 0
        answered = ok or draw(st.booleans())
        rows.append(
            sent(
                path := draw(st.lists(SEGMENTS, min_size=1, max_size=5)),
                t_send,
                t_send + more if answered else None,
                t_send + more + most,
                session=number,
                turn=0,
                output_tokens=draw(st.integers(0, 9)),
                status="ok" if ok else "cancelled",
                cached_tokens=draw(st.none() | st.integers(0, 40)) if ok else None,
                phase=draw(st.sampled_from(["warmup", "measure", "measure"])),
                warmth=draw(st.sampled_from(["cold", "warm"])),
                cache_salt=draw(st.sampled_from([None, "salt"])),
                path_levels=[f"level {identity % 3}" for identity, _ in path],
            )
        )
        if not answered:
            rows[-1] |= {"t_first": None, "t_last": None}
    return rows


def log_of(rows: list[Row]) -> tuple[LoggedRequest, ...]:
    return read_log(target_run(rows, {"engine": "openai"}, lexicon={"words": WORDS})).requests


@pytest.mark.parametrize("identity", ENGINES.values(), ids=ENGINES)
@FEW
@given(rows=logs())
def test_the_steps_add_up(identity: dict[str, Any], rows: list[Row]) -> None:
    run = target_run(rows, identity, lexicon={"words": WORDS})
    fall = waterfall(read_log(run), run.target)
    measured = [row for row in rows if row["phase"] == "measure"]
    assert fall.traffic == len(rows)
    if fall.steps is None:
        assert not measured
        return
    steps = fall.steps
    kept = steps.shareable - steps.granularity - steps.in_flight - (steps.capacity or 0) - (steps.routing or 0)
    assert kept == steps.expected
    reported = [row for row in measured if row["cached_tokens"] is not None]
    if reported:
        assert steps.measured == sum(row["cached_tokens"] for row in reported)
        assert steps.expected - (steps.unexplained or 0) == steps.measured
        assert steps.unexplained == fall_short(fall.contributors) or len(reported) - fall.exact > 10
    assert steps.requests == len(reported or measured)
    assert steps.prompt_tokens == sum(row["planned_prompt_tokens"] for row in reported or measured)
    (of_measure,) = (part.steps for part in fall.by_phase if part.key == "measure")
    assert of_measure == steps
    for parts in (fall.by_kind, fall.by_warmth, fall.by_turn, fall.by_window, fall.by_level):
        for field in fields(Steps):
            if parts is fall.by_level and field.name == "requests":
                continue
            values = [getattr(part.steps, field.name) for part in parts]
            whole = getattr(steps, field.name)
            assert values.count(None) == (len(values) if whole is None else 0)
            assert whole is None or sum(values) == whole


def fall_short(contributors: Any) -> int:
    return sum(one.unexplained for one in contributors)


@pytest.mark.parametrize("identity", ENGINES.values(), ids=ENGINES)
@FEW
@given(rows=logs())
def test_no_step_gives_back_what_one_before_it_took(identity: dict[str, Any], rows: list[Row]) -> None:
    found = expect(log_of(rows), engine_cache(target(identity=identity)))
    steps = [found.shareable, found.in_blocks, found.computed]
    steps += [step for step in (found.kept, found.found) if step is not None]
    for values in zip(*steps, strict=True):
        assert list(values) == sorted(values, reverse=True)


@pytest.mark.parametrize(
    ("identity", "model"),
    [
        (ENGINES["vllm"], lambda: BlockPool(None, 4)),
        (ENGINES["sglang"], lambda: RadixTree(None)),
        (ENGINES["sglang in pages"], lambda: RadixTree(None, 4)),
        (ENGINES["mlx-lm"], lambda: Entries(None)),
    ],
    ids=["vllm", "sglang", "sglang in pages", "mlx-lm"],
)
@FEW
@given(rows=logs())
def test_an_endless_cache_finds_what_the_engines_model_finds_in_endless_room(
    identity: dict[str, Any], model: Any, rows: list[Row]
) -> None:
    log = log_of(rows)

    def cached(made: CacheModel[Any]) -> list[int]:
        admissions = replay(log, lambda request: made.admit(request.prompt), made)
        return [admission.cached_tokens for admission in admissions]

    assert cached(Endless(engine_cache(target(identity=identity)).rules)) == cached(model())


@FEW
@given(rows=logs())
def test_the_items_of_a_log_share_what_its_segments_share(rows: list[Row]) -> None:
    rows.sort(key=lambda row: int(row["t_send"]))
    for (one, log_one), (two, log_two) in combinations(zip(rows, log_of(rows), strict=True), 2):
        spelled = [items(row["path"], row["path_tokens"], WORDS) for row in (one, two)]
        shared = common_tokens(*spelled) if one["cache_salt"] == two["cache_salt"] else 0
        assert common_tokens(log_one.prompt, log_two.prompt) == shared
        assert log_one.prompt_tokens == sum(one["path_tokens"])
