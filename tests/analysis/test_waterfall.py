"""Each step of the waterfall, on logs that are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from harness.analysis.request_log import read_log
from harness.analysis.steps import Steps
from harness.analysis.waterfall import Waterfall, waterfall
from harness.analysis.waterfall_table import waterfall_lines
from harness.record.manifest import StartUpCheck
from harness.workload.content import content_id
from tests.analysis.rows import Row
from tests.analysis.waterfall_rows import LLAMA_CPP, MLX_LM, SGLANG, VLLM, sent, target_run

A, B, C, D = 1, 2, 3, 4


def fall_of(rows: list[Row], identity: dict[str, Any], **changes: Any) -> Waterfall:
    run = target_run(rows, identity, **changes)
    return waterfall(read_log(run), run.target)


def steps_of(rows: list[Row], identity: dict[str, Any], **changes: Any) -> Steps:
    steps = fall_of(rows, identity, **changes).steps
    assert steps is not None
    return steps


def lost(steps: Steps) -> tuple[int | None, ...]:
    """(shareable, granularity, in flight, capacity, routing, expected)."""
    return steps.shareable, steps.granularity, steps.in_flight, steps.capacity, steps.routing, steps.expected


HERD = [sent([(A, 100)], number, 1_000 + number, 2_000) for number in (0, 1, 2)] + [sent([(A, 100)], 3_000)]
"""Three at once, and one that comes when all is done."""


def test_what_is_still_being_computed_is_lost_in_flight() -> None:
    # Three of them share 100 tokens with the first; the last token is always computed; two come too early for the rest.
    assert lost(steps_of(HERD, SGLANG)) == (300, 3, 198, 0, 0, 99)
    assert steps_of(HERD, SGLANG).prompt_tokens == 400


def test_vllm_finds_blocks_that_were_only_scheduled() -> None:
    # min(100, 99) // 16 * 16 = 96 for each of the three, the herd included.
    assert lost(steps_of(HERD, VLLM | {"capacity_tokens": 1_600})) == (300, 12, 0, 0, 0, 288)


def test_a_competing_prefix_evicts_what_there_is_no_room_for() -> None:
    """Ten blocks. A takes 8 for its prompt, and a 9th for its answer, that is never full.

    B takes the two that hold nothing, then A's last ones: 6 for its prompt, one more for its answer. So A finds its
    first block only.
    """
    rows = [sent([(A, 128)], 0), sent([(B, 128)], 10), sent([(A, 128)], 20)]
    by_hand = VLLM | {"capacity_tokens": 160, "by_hand": ["capacity_tokens"]}
    assert lost(steps_of(rows, by_hand)) == (128, 16, 0, 96, 0, 16)


def test_the_block_of_vllm_that_holds_nothing_is_no_room() -> None:
    rows = [sent([(A, 128)], 0), sent([(B, 128)], 10), sent([(A, 128)], 20)]
    told = VLLM | {"capacity_tokens": 176, "details": {"kv_cache_size_tokens": "176", "engines": "1"}}
    assert lost(steps_of(rows, told)) == (128, 16, 0, 96, 0, 16)
    # As many tokens by hand are one block more, so that A keeps its second block, too.
    by_hand = VLLM | {"capacity_tokens": 176, "by_hand": ["capacity_tokens"]}
    assert lost(steps_of(rows, by_hand)) == (128, 16, 0, 80, 0, 32)


def test_mlx_lm_drops_the_first_of_more_than_ten_entries() -> None:
    rows = [sent([(identity, 50)], 10 * identity) for identity in range(11)]
    again = [sent([(1, 50), (A, 5)], 200), sent([(0, 50), (A, 5)], 300)]
    assert lost(steps_of(rows + again, MLX_LM)) == (100, 0, 0, 50, 0, 50)


def test_what_another_slot_holds_is_lost_to_routing() -> None:
    # The first one's prompt is computed, but its slot is busy with the answer.
    rows = [sent([(A, 100)], 0, 10, 1_000), sent([(A, 100)], 20, 30, 40)]
    assert lost(steps_of(rows, LLAMA_CPP)) == (100, 1, 0, 0, 99, 0)


def test_a_request_that_waits_for_a_slot_is_looked_up_when_it_has_one() -> None:
    # Both slots work on the prompt when the third one comes, and the first is through when that gets its slot.
    rows = [sent([(A, 100)], 0, 10, 50), sent([(A, 100)], 1, 90, 95), sent([(A, 100)], 2, 60, 70)]
    assert lost(steps_of(rows, LLAMA_CPP)) == (200, 2, 99, 0, 0, 99)


def test_what_no_slot_holds_any_more_is_lost_to_capacity() -> None:
    rows = [sent([(identity, 100)], 10 * number) for number, identity in enumerate((A, B, C, A))]
    assert lost(steps_of(rows, LLAMA_CPP)) == (100, 1, 0, 99, 0, 0)


def test_hits_are_rounded_to_the_blocks_that_the_start_up_check_found() -> None:
    rows = [sent([(A, 70), (B, 30)], 0), sent([(A, 70), (C, 30)], 10)]
    unsure = {"engine": "openai", "model": "m"}
    fall = fall_of(rows, unsure)
    assert fall.steps is not None
    assert lost(fall.steps) == (70, 0, 0, None, None, 70)
    assert any("block or page size is not known" in sentence for sentence in fall.assumptions)
    check = StartUpCheck(verdict="works", sentence="", granularity_tokens=32, probes=())
    fall = fall_of(rows, unsure, check=check)
    assert fall.steps is not None
    assert lost(fall.steps) == (70, 6, 0, None, None, 64)
    assert fall.assumptions == ()
    assert "no model of the cache of openai" in fall.unknown["capacity"]


def test_other_cache_salts_share_nothing() -> None:
    rows = [sent([(A, 100)], number, cache_salt=salt) for number, salt in enumerate([None, "x", "y", "y"])]
    assert steps_of(rows, SGLANG).shareable == 100


def test_an_answer_is_found_by_the_turn_that_sends_it_back() -> None:
    """All but its last token, which SGLang never computed; a scripted reply is another text."""
    live = content_id("r1", 0, "live", 7, 0)
    first = sent([(A, 60)], 0, session=7, turn=0, output_tokens=20)
    back = sent([(A, 60), (live, 20), (B, 5)], 10, session=7, turn=1)
    scripted = sent([(A, 60), (C, 20), (B, 5)], 20, session=7, turn=1)
    assert lost(steps_of([first, back], SGLANG)) == (80, 1, 0, 0, 0, 79)
    assert lost(steps_of([first, back], MLX_LM)) == (80, 0, 0, 0, 0, 80)
    assert lost(steps_of([first, scripted], SGLANG)) == (60, 0, 0, 0, 0, 60)


def test_an_answer_is_not_there_before_its_end() -> None:
    live = content_id("r1", 0, "live", 7, 0)
    first = sent([(A, 60)], 0, 10, 1_000, session=7, turn=0, output_tokens=20)
    early = sent([(A, 60), (live, 20)], 500, session=7, turn=1)
    assert lost(steps_of([first, early], SGLANG)) == (80, 1, 19, 0, 0, 60)


def test_traffic_of_other_phases_and_failures_fills_the_cache_and_does_not_count() -> None:
    rows = [
        sent([(A, 100)], 0, phase="warmup"),
        sent([(B, 100)], 10, status="cancelled", cached_tokens=None),
        sent([(C, 100)], 20, status="http_error"),
        *(sent([(identity, 100), (D, 10)], 20 + 10 * identity, cached_tokens=100) for identity in (A, B, C)),
    ]
    fall = fall_of(rows, SGLANG)
    assert fall.steps is not None
    assert (fall.steps.requests, fall.traffic, fall.not_compared) == (3, 5, 1)
    # What was answered with an error status brought nothing into the cache.
    assert (fall.steps.expected, fall.steps.measured, fall.steps.unexplained) == (200, 300, -100)


def test_after_a_complete_reset_nothing_of_before_is_there() -> None:
    rows = [sent([(A, 100)], 0, phase="warmup"), sent([(A, 100), (B, 10)], 10)]
    assert steps_of(rows, SGLANG).shareable == 100
    assert steps_of(rows, SGLANG, cold_start="reset: SGLang emptied its cache").shareable == 0


def test_what_the_ramp_brought_into_the_cache_is_there_when_measuring_begins() -> None:
    rows = [sent([(A, 100)], 0, phase="ramp", cached_tokens=0), sent([(A, 100), (B, 10)], 10, cached_tokens=100)]
    fall = fall_of(rows, SGLANG, cold_start="reset: SGLang emptied its cache")
    assert [(part.key, part.steps.requests, part.steps.expected) for part in fall.by_phase] == [
        ("ramp", 1, 0),
        ("measure", 1, 100),
    ]


def test_what_the_engine_does_not_report_is_unexplained_from_some_token_on() -> None:
    cold = sent([(A, 60), (B, 40)], 0, cached_tokens=0, session=1, turn=0)
    short = sent([(A, 60), (B, 40), (C, 10)], 10, cached_tokens=60, session=1, turn=1)
    more = sent([(D, 50)], 20, cached_tokens=7)
    silent = sent([(A, 60)], 30)
    fall = fall_of([cold, short, more, silent], SGLANG)
    assert fall.steps is not None
    assert lost(fall.steps) == (100, 0, 0, 0, 0, 100)
    assert (fall.steps.measured, fall.steps.unexplained) == (67, 33)
    assert (fall.steps.requests, fall.exact, fall.not_compared) == (3, 1, 1)
    assert [
        (one.request_id, one.session, one.turn, one.expected, one.measured, one.unexplained, one.from_token)
        for one in fall.contributors
    ] == [("q10", 1, 1, 100, 60, 40, 60), ("q20", None, None, 0, 7, -7, 0)]


def test_without_any_report_the_steps_are_of_all_requests() -> None:
    fall = fall_of(HERD, SGLANG)
    assert fall.steps is not None
    assert (fall.steps.requests, fall.steps.measured, fall.steps.unexplained) == (4, None, None)
    assert fall.unknown == dict.fromkeys(("measured", "unexplained"), "no request reports its cached tokens")


def test_without_a_known_capacity_the_steps_end_in_flight() -> None:
    fall = fall_of([row | {"cached_tokens": 96} for row in HERD], VLLM | {"unknown": {"capacity_tokens": "told there"}})
    assert fall.steps is not None
    assert lost(fall.steps) == (300, 12, 0, None, None, 288)
    assert fall.unknown == dict.fromkeys(("capacity", "routing"), "the KV capacity is not known: told there")
    assert fall.steps.unexplained == 288 - 4 * 96


@pytest.mark.parametrize("told", [{"prefix_caching": False}, {}])
def test_a_cache_that_is_off_keeps_nothing(told: dict[str, Any]) -> None:
    check = StartUpCheck(verdict="works" if told else "caching-off", sentence="", granularity_tokens=None, probes=())
    fall = fall_of(HERD, SGLANG | told, check=check)
    assert fall.steps is not None
    assert lost(fall.steps) == (300, 3, 198, 99, 0, 0)
    lost_later = fall_of([sent([(A, 100)], 0, 10, 20), sent([(A, 100)], 30, 40, 50)], SGLANG | told, check=check)
    words = next(waterfall_lines(lost_later))
    assert words == (
        "Biggest loss: 99 tokens (49.5 % of all prompt tokens), capacity: prefix caching is off, so nothing was kept"
    )


def test_several_replicas_are_one_cache_and_what_is_lost_between_them_is_not_known() -> None:
    rows = [sent([(A, 128)], 0), sent([(B, 128)], 10), sent([(A, 128)], 20)]
    two = {"metrics_urls": ["http://a/metrics", "http://b/metrics"]}
    fall = fall_of(rows, VLLM | {"capacity_tokens": 160, "by_hand": ["capacity_tokens"]}, target=two)
    assert fall.steps is not None
    assert lost(fall.steps) == (128, 16, 0, 0, None, 112)
    assert fall.unknown["routing"] == "no answer tells which replica it came from"


def test_slots_of_several_replicas_lose_nothing_to_what_is_not_known() -> None:
    # The first one's prompt is computed, but its slot is busy with the answer: in which replica, nobody tells.
    rows = [sent([(A, 100)], 0, 10, 1_000), sent([(A, 100)], 20, 30, 40)]
    two = {"metrics_urls": ["http://a/metrics", "http://b/metrics"]}
    assert lost(steps_of(rows, LLAMA_CPP, target=two)) == (100, 1, 0, 0, None, 99)


def test_each_phase_has_its_steps() -> None:
    rows = [
        sent([(A, 100)], 0, phase="check", cached_tokens=0),
        sent([(A, 100), (B, 10)], 10, phase="warmup", cached_tokens=90),
        sent([(A, 100), (B, 10), (C, 10)], 20, cached_tokens=110),
        sent([(A, 100)], 30, phase="warmup"),
    ]
    fall = fall_of(rows, SGLANG)
    found = {part.key: (part.steps.requests, part.steps.expected, part.steps.measured) for part in fall.by_phase}
    assert found == {"check": (1, 0, 0), "warmup": (1, 100, 90), "measure": (1, 110, 110)}
    assert list(found) == ["check", "warmup", "measure"]
    assert fall.steps == fall.by_phase[-1].steps
    silent = fall_of([row | {"cached_tokens": None} for row in rows], SGLANG)
    assert [(part.key, part.steps.requests, part.steps.measured) for part in silent.by_phase] == [
        ("check", 1, None),
        ("warmup", 2, None),
        ("measure", 1, None),
    ]


def test_a_template_that_was_only_counted_is_said_to_be_so() -> None:
    template = {"opener_tokens": 0, "head": {"user": 0}, "between": {}, "tail": {"user": 7}, "reply_after_tail": False}
    fall = fall_of(HERD, SGLANG, lexicon={"words": 16, "template": template | {"head_known": False}})
    assert [sentence.split(":")[0] for sentence in fall.assumptions] == [
        "The chat template's tokens were counted, not seen"
    ]
    assert fall_of(HERD, SGLANG, lexicon={"template": template | {"head_known": True}}).assumptions == ()


def test_requests_whose_prompts_are_not_known_are_left_out() -> None:
    fall = fall_of([sent([(A, 10)], 0) | {"path": None, "path_tokens": None}], SGLANG)
    assert (fall.steps, fall.not_compared) == (None, 1)
    assert fall.unknown == {"steps": "no measured request was sent whose prompt is known"}
    assert fall_of([], SGLANG).steps is None
