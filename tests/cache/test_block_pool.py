from __future__ import annotations

import pytest

from harness.cache.base import Prompt, serve
from harness.cache.block_pool import BlockPool
from harness.errors import InputError

ANSWER = [(1000, 8)]


def test_the_counts_recorded_of_a_real_server() -> None:
    """vLLM 0.32, 320 blocks of 32 (one is never used): cold, other question, first token changed, again."""
    pool = BlockPool(320, 32)
    prompt = [(1, 2030), (2, 30)]
    assert serve(pool, prompt, ANSWER) == 0
    assert serve(pool, [(1, 2030), (3, 30)], ANSWER) == 2016
    assert serve(pool, [(4, 1), (1, 2029), (2, 30)], ANSWER) == 0
    assert serve(pool, prompt, ANSWER) == 2048


@pytest.mark.parametrize(("others", "cached"), [(3, 2048), (4, 1984), (5, 0), (6, 0)])
def test_other_prompts_evict_the_oldest_from_its_tail(others: int, cached: int) -> None:
    """319 blocks can be used. Each prompt takes 65 and leaves 64 that can be found: the fifth prompt is 2 short."""
    pool = BlockPool(320, 32)
    for number in range(1 + others):
        assert serve(pool, [(number, 2060)], ANSWER) == 0
    assert serve(pool, [(0, 2060)], ANSWER) == cached


@pytest.mark.parametrize(("answer", "cached"), [(2, 4), (3, 8)])
def test_all_of_an_answer_but_its_last_token_is_stored(answer: int, cached: int) -> None:
    pool = BlockPool(100, 4)
    serve(pool, [(1, 6)], [(2, answer)])
    assert serve(pool, [(1, 6), (2, answer), (3, 4)], ANSWER) == cached


def test_a_block_that_is_not_full_is_used_first() -> None:
    """4 blocks of 4. A and B leave a full block each, and the last block of B is used again before the one of A is."""
    pool = BlockPool(5, 4)
    serve(pool, [(1, 6)], [(9, 1)])
    serve(pool, [(2, 6)], [(9, 1)])
    serve(pool, [(3, 8)], [(9, 1)])
    assert serve(pool, [(1, 6)], [(9, 1)]) == 4


def test_a_repeated_prompt_takes_room_for_its_last_block() -> None:
    pool = BlockPool(100, 4)
    assert serve(pool, [(1, 8)], [(9, 1)]) == 0
    assert pool.occupied_blocks == 2
    assert serve(pool, [(1, 8)], [(9, 1)]) == 4
    assert pool.occupied_blocks == 3


def test_a_block_is_known_by_all_that_stands_before_it() -> None:
    pool = BlockPool(None, 4)
    serve(pool, [(1, 4), (2, 8)], ANSWER)
    assert serve(pool, [(2, 8), (9, 4)], ANSWER) == 0
    assert serve(pool, [(1, 2), (2, 8), (9, 4)], ANSWER) == 0
    assert serve(pool, [(1, 4), (2, 8), (9, 4)], ANSWER) == 12


def test_an_item_that_is_longer_elsewhere_shares_its_blocks() -> None:
    pool = BlockPool(None, 4)
    serve(pool, [(1, 1), (2, 7), (3, 1)], ANSWER)
    assert serve(pool, [(1, 1), (2, 30)], ANSWER) == 8
    assert serve(pool, [(1, 1), (2, 7), (2, 7)], ANSWER) == 8


def test_a_prompt_is_found_from_its_admission_on() -> None:
    pool = BlockPool(100, 4)
    pool.admit([(1, 13)])
    assert pool.admit([(1, 13)]).cached_tokens == 12


def test_a_long_prompt_is_found_as_far_as_it_was_scheduled() -> None:
    pool = BlockPool(100, 4, step_tokens=8)
    first = pool.admit([(1, 20)])
    assert pool.admit([(1, 20)]).cached_tokens == 8
    pool.prefilled(first)
    assert pool.admit([(1, 20)]).cached_tokens == 16


def test_what_was_computed_for_a_client_that_hung_up_stays() -> None:
    """As seen on the real server: 3,170 tokens, given up in the prefill; the next request found 2,048."""
    pool = BlockPool(320, 32, step_tokens=2048)
    prompt = [(1, 3170)]
    pool.abandon(pool.admit(prompt))
    assert pool.occupied_blocks == 64
    assert serve(pool, prompt, ANSWER) == 2048


def test_blocks_in_use_are_not_evicted() -> None:
    pool = BlockPool(6, 4)
    running = pool.admit([(1, 12)])
    pool.prefilled(running)
    serve(pool, [(2, 8)], [(9, 1)])
    serve(pool, [(3, 8)], [(9, 1)])
    assert pool.admit([(1, 12)]).cached_tokens == 8
    pool.finish(running, [(9, 1)])


def test_what_does_not_fit_is_served_and_the_pool_keeps_its_size() -> None:
    pool = BlockPool(3, 4)
    assert serve(pool, [(1, 12)], [(9, 1)]) == 0
    assert pool.occupied_blocks == 2
    assert serve(pool, [(1, 12)], [(9, 1)]) == 8


def test_after_clear_nothing_is_known() -> None:
    pool = BlockPool(100, 4)
    serve(pool, [(1, 8)], ANSWER)
    pool.clear()
    assert pool.occupied_blocks == 0
    assert serve(pool, [(1, 8)], ANSWER) == 0


def test_an_empty_answer_adds_nothing() -> None:
    pool = BlockPool(100, 4)
    answer: Prompt = ()
    assert serve(pool, [(1, 8)], answer) == 0
    assert serve(pool, [(1, 8), (2, 1)], answer) == 8


@pytest.mark.parametrize(("blocks", "block_tokens"), [(1, 16), (100, 0)])
def test_a_pool_that_holds_nothing_is_refused(blocks: int, block_tokens: int) -> None:
    with pytest.raises(InputError, match="holds nothing"):
        BlockPool(blocks, block_tokens)
