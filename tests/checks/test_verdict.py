"""Every verdict, from counts worked out by hand: prompts of 1,024 tokens, the half-shared one with 511 in common."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.checks.prediction import Observation
from harness.checks.verdict import Circumstances, judge

FLAG = "start toy with --report"
BLOCKS_OF_16 = Circumstances(
    granularity_tokens=16, advice={"cached_tokens": FLAG, "metrics": "start toy with --metrics"}
)
TOLD_NOTHING = replace(BLOCKS_OF_16, granularity_tokens=None)

Counts = tuple[int | None, int | None]


def seen(
    cold: Counts = (0, 0),
    repeat: Counts = (1008, 1008),
    half: Counts = (496, 496),
    ids: Counts | None = None,
    prompt_tokens: tuple[int | None, int | None] = (1024, 1024),
    ttft_ms: tuple[float | None, float | None, float | None] = (100.0, 90.0, 95.0),
) -> list[Observation]:
    """(by the answer, by the counter) of each request; prompt tokens of cold and repeat; TTFT of cold, repeat, half."""
    observed = [
        Observation("cold", 1024, 0, 8, prompt_tokens[0], *cold, ttft_ms[0]),
        Observation("repeat", 1024, 1024, 1024, prompt_tokens[1], *repeat, ttft_ms[1]),
        Observation("half", 1024, 511, 511, prompt_tokens[0], *half, ttft_ms[2]),
    ]
    if ids is not None:
        observed.append(Observation("ids_cold", 900, 0, 8, 900, 0, 0, 100.0))
        observed.append(Observation("ids_repeat", 900, 900, 900, 900, *ids, 10.0))
    return observed


def test_works() -> None:
    verdict = judge(seen(), BLOCKS_OF_16)
    assert (verdict.kind, verdict.granularity_tokens) == ("works", 16)
    assert verdict.sentence == (
        "The cache works: an exact repeat hit 1008 of 1024 tokens, a prompt that shares its first half hit 496 of 1024 "
        "tokens, as predicted for a cache with blocks of 16 tokens."
    )


def test_works_without_counters_or_with_cold_answers_that_leave_out_a_zero() -> None:
    assert judge(seen((0, None), (1008, None), (496, None)), BLOCKS_OF_16).kind == "works"
    assert judge(seen((None, None), (1008, None), (496, None)), BLOCKS_OF_16).kind == "works"


def test_works_token_by_token_with_the_templates_head_in_the_cache() -> None:
    exact = replace(BLOCKS_OF_16, granularity_tokens=1)
    assert judge(seen((8, 8), (1023, 1023), (511, 511)), exact).kind == "works"
    assert judge(seen((9, 9), (1023, 1023), (511, 511)), exact).kind == "differs"


def test_works_with_blocks_of_a_size_that_the_engine_does_not_tell() -> None:
    verdict = judge(seen(), TOLD_NOTHING)
    assert (verdict.kind, verdict.granularity_tokens) == ("works", 16)
    assert "fits a cache with blocks of 16 tokens" in verdict.sentence


def test_works_with_a_size_that_stays_open() -> None:
    """1,020 and 510 fit blocks of 10, but also of 6, 15, 30, ..."""
    verdict = judge(seen((0, 0), (1020, 1020), (510, 510)), TOLD_NOTHING)
    assert (verdict.kind, verdict.granularity_tokens) == ("works", None)
    assert "several block sizes" in verdict.sentence


def test_larger_blocks_than_told() -> None:
    verdict = judge(seen(repeat=(784, 784), half=(0, 0)), BLOCKS_OF_16)
    assert (verdict.kind, verdict.granularity_tokens) == ("differs", 784)
    assert "an exact repeat hit 784 by the answer and by the engine's counter, 1008 expected" in verdict.sentence
    assert "Blocks of 784 tokens would explain all of it." in verdict.sentence


def test_one_block_less_looks_like_blocks_of_twice_the_size() -> None:
    verdict = judge(seen(repeat=(992, 992), half=(480, 480)), BLOCKS_OF_16)
    assert (verdict.kind, verdict.granularity_tokens) == ("differs", None)
    assert "speculative decoding" in verdict.sentence


def test_whole_prompts_only() -> None:
    for told in (replace(BLOCKS_OF_16, granularity_tokens=1), TOLD_NOTHING):
        verdict = judge(seen(repeat=(1023, 1023), half=(0, 0)), told)
        assert (verdict.kind, verdict.granularity_tokens) == ("differs", None)
        assert "sliding windows" in verdict.sentence


def test_traffic_of_others_in_the_counter() -> None:
    verdict = judge(seen(half=(496, 5000)), BLOCKS_OF_16)
    assert verdict.kind == "differs"
    assert "496 by the answer and 5000 by the engine's counter, 496 expected" in verdict.sentence
    assert "other clients" in verdict.sentence


def test_a_counter_that_misses_hits() -> None:
    verdict = judge(seen((0, 0), (1008, 0), (496, 0)), BLOCKS_OF_16)
    assert verdict.kind == "differs"
    assert "trust them rather than the counter" in verdict.sentence


def test_answers_that_deny_what_the_counter_shows() -> None:
    verdict = judge(seen((0, 0), (0, 1008), (0, 496)), BLOCKS_OF_16)
    assert verdict.kind == "differs"
    assert "trust the counter" in verdict.sentence


def test_a_hit_of_what_was_never_sent() -> None:
    verdict = judge(seen(cold=(512, 512)), BLOCKS_OF_16)
    assert verdict.kind == "differs"
    assert "never sent" in verdict.sentence


def test_prompts_that_are_cut_short() -> None:
    observed = seen(repeat=(736, None), half=(0, None), prompt_tokens=(750, 750))
    verdict = judge(observed, BLOCKS_OF_16)
    assert verdict.kind == "differs"
    assert "counted 750 prompt tokens where 1024 were sent" in verdict.sentence


def test_approximate_lengths_are_taken_as_the_engine_counts_them() -> None:
    observed = seen(repeat=(976, 976), prompt_tokens=(980, 980))
    assert judge(observed, BLOCKS_OF_16).kind == "differs"
    assert judge(observed, replace(BLOCKS_OF_16, exact=False)).kind == "works"


def test_caching_off_by_every_count() -> None:
    verdict = judge(seen((0, 0), (0, 0), (0, 0), ids=(0, 0)), BLOCKS_OF_16)
    assert verdict.kind == "caching-off"
    assert "of 1024 prompt tokens an exact repeat hit 0 by the answer and by the engine's counter" in verdict.sentence
    assert "template" not in verdict.sentence


@pytest.mark.parametrize("counts", [(0, None), (None, 0)])
def test_caching_off_by_the_count_that_there_is(counts: Counts) -> None:
    assert judge(seen(counts, counts, counts), BLOCKS_OF_16).kind == "caching-off"


def test_caching_off_says_what_the_server_says_and_what_else_it_may_be() -> None:
    zero = seen((0, 0), (0, 0), (0, 0))
    told = replace(BLOCKS_OF_16, prefix_caching=True)
    assert "The server says that it is on: its log" in judge(zero, told).sentence
    assert "only token ids could tell" in judge(zero, told).sentence
    untold = replace(TOLD_NOTHING, advice={"caching": "start toy with --cache"})
    assert judge(zero, untold).sentence.endswith("Start toy with --cache.")
    assert judge(zero, TOLD_NOTHING).sentence.endswith("Start the server with prefix caching on.")
    assert "more than 1023 tokens" in judge(zero, untold).sentence


def test_reporting_off_by_the_counter() -> None:
    verdict = judge(seen((None, 0), (None, 1008), (None, 496)), BLOCKS_OF_16)
    assert (verdict.kind, verdict.granularity_tokens) == ("reporting-off", 16)
    assert verdict.sentence.endswith(f"{FLAG}.")


def test_reporting_off_names_the_flag_even_if_the_counter_differs() -> None:
    verdict = judge(seen((None, 0), (None, 992), (None, 480)), BLOCKS_OF_16)
    assert verdict.kind == "reporting-off"
    assert FLAG in verdict.sentence
    assert "992 by the engine's counter, 1008 expected" in verdict.sentence


NOTHING: Counts = (None, None)


def test_reporting_off_by_the_clock() -> None:
    verdict = judge(seen(NOTHING, NOTHING, NOTHING, ttft_ms=(120.0, 10.0, 60.0)), BLOCKS_OF_16)
    assert verdict.kind == "reporting-off"
    assert "12.0 times sooner" in verdict.sentence
    assert "a hint and no count" in verdict.sentence
    assert FLAG in verdict.sentence


@pytest.mark.parametrize(
    ("ttft_ms", "said"),
    [
        ((120.0, 100.0, 110.0), "took 0.83 times as long"),
        ((120.0, 10.0, 12.0), "took 0.08 times as long"),  # the first request of all was slow, that is all
        ((120.0, None, 110.0), "no first token was seen"),
    ],
)
def test_unclear_without_any_evidence(ttft_ms: tuple[float | None, float | None, float | None], said: str) -> None:
    verdict = judge(seen(NOTHING, NOTHING, NOTHING, ttft_ms=ttft_ms), BLOCKS_OF_16)
    assert verdict.kind == "unclear"
    assert said in verdict.sentence
    assert FLAG in verdict.sentence
    assert "start toy with --metrics" in verdict.sentence


def test_unclear_where_a_prompt_is_shorter_than_a_block() -> None:
    verdict = judge(seen((0, 0), (0, 0), (0, 0)), replace(BLOCKS_OF_16, granularity_tokens=1024))
    assert verdict.kind == "unclear"
    assert "block of 1024" in verdict.sentence


@pytest.mark.parametrize("observed", [seen((0, 0), (0, 0), (0, 0), ids=(896, 896)), seen(half=(0, 0))])
def test_unclear_behind_a_router(observed: list[Observation]) -> None:
    verdict = judge(observed, replace(BLOCKS_OF_16, replicas=2))
    assert verdict.kind == "unclear"
    assert "another of the 2 replicas" in verdict.sentence


def test_a_router_that_sends_repeats_to_the_same_replica_is_no_obstacle() -> None:
    assert judge(seen(), replace(BLOCKS_OF_16, replicas=2)).kind == "works"


def test_template_drift_by_length() -> None:
    verdict = judge(seen(prompt_tokens=(1024, 1025)), BLOCKS_OF_16)
    assert verdict.kind == "template-drift"
    assert "1024 and 1025 prompt tokens" in verdict.sentence


def test_template_drift_by_token_ids() -> None:
    verdict = judge(seen((0, 0), (0, 0), (0, 0), ids=(896, 896)), BLOCKS_OF_16)
    assert verdict.kind == "template-drift"
    assert "exact repeat of 900 token ids hit 896" in verdict.sentence


def test_a_repeat_that_hits_the_templates_head_alone_is_suspected_of_drift() -> None:
    verdict = judge(seen((7, 7), (7, 7), (7, 7)), replace(BLOCKS_OF_16, granularity_tokens=1))
    assert verdict.kind == "differs"
    assert "a clock or a random id" in verdict.sentence
