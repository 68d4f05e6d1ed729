from __future__ import annotations

from harness.cache.block_references import block_references
from harness.cache.working_set import working_set, working_set_of_items

A, B, C = (1, 4), (2, 4), (3, 4)


def test_blocks_in_use_and_blocks_of_later_use() -> None:
    used = working_set(block_references([[A, B], [C], [A], [A, B], [C, (4, 3)]], 4))
    assert used.distinct(0, 5) == 3
    assert used.distinct(1, 3) == 2
    assert used.distinct(2, 2) == 0
    # After request 0: A B; after 1: A B C; after 2: the same; after 3: C; after 4: nothing comes again.
    assert used.reusable().tolist() == [2, 3, 3, 1, 0]


def test_requests_without_a_full_block_use_none() -> None:
    used = working_set(block_references([[(1, 3)], [(1, 3)]], 4))
    assert used.distinct(0, 2) == 0
    assert used.reusable().tolist() == [0, 0]


def test_items_count_their_tokens() -> None:
    used = working_set_of_items([[(0, 4), (1, 30)], [(2, 5)], [(0, 4)], [(0, 4), (1, 30)], [(2, 5), (3, 7)]])
    assert used.distinct(0, 5) == 4 + 30 + 5 + 7
    assert used.distinct(1, 3) == 5 + 4
    assert used.distinct(2, 2) == 0
    assert used.reusable().tolist() == [34, 39, 39, 5, 0]


def test_items_of_one_block_each_are_in_use_as_the_blocks_are() -> None:
    prompts = [[A, B], [C], [A], [A, B], [C, (4, 4)], [B], [A, (5, 4)], [B]]
    # As the id of an item stands for all before it, B alone has another one than B after A.
    named = [[(f"{prompt[:end]}", 4) for end in range(1, len(prompt) + 1)] for prompt in prompts]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for one in named for name, _ in one))}
    in_blocks = working_set(block_references(prompts, 4))
    in_tokens = working_set_of_items([[(numbers[name], tokens) for name, tokens in one] for one in named])
    assert (4 * in_blocks.reusable()).tolist() == in_tokens.reusable().tolist()
    for start in range(8):
        assert 4 * in_blocks.distinct(start, 8) == in_tokens.distinct(start, 8)


def test_no_prompts_use_nothing() -> None:
    used = working_set_of_items([])
    assert used.distinct(0, 0) == 0
    assert used.reusable().tolist() == []
    assert working_set_of_items([[], []]).reusable().tolist() == [0, 0]
