"""What prompts share is counted as the models of harness.cache count it."""

from __future__ import annotations

import random

import pytest

from harness.cache.base import serve
from harness.cache.block_pool import BlockPool
from harness.cache.radix import RadixTree
from harness.lint.reuse import Cache, Stream, served, shared_tokens
from harness.lint.tokens import packed


def prompts(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    made: list[list[int]] = []
    for _ in range(60):
        base = rng.choice(made)[: rng.randrange(1, 40)] if made and rng.random() < 0.8 else []
        made.append([*base, *(rng.randrange(3) for _ in range(rng.randrange(1, 20)))])
    return made


def streams(made: list[list[int]]) -> list[Stream]:
    return [("", packed(ids)) for ids in made]


@pytest.mark.parametrize("seed", range(20))
def test_an_infinite_cache_is_a_radix_tree_without_end(seed: int) -> None:
    made, tree = prompts(seed), RadixTree(None)
    assert shared_tokens(streams(made)) == [serve(tree, [(one, 1) for one in ids], ()) for ids in made]


@pytest.mark.parametrize("block", [2, 4, 16])
def test_blocks_are_those_of_a_pool_without_end(block: int) -> None:
    made, pool = prompts(block), BlockPool(None, block)
    expected = sum(serve(pool, [(one, 1) for one in ids], ()) for ids in made)
    assert served(streams(made), Cache(block)).hit_tokens == expected


def test_a_capacity_is_that_of_an_lru_cache() -> None:
    made = [[1] * 8, [2] * 8, [1] * 8, [2] * 8]
    assert served(streams(made), Cache(4, 16)).hit_tokens == 8
    assert served(streams(made), Cache(4, 4)).hit_tokens == 0
    assert served(streams(made), Cache(4)).hit_tokens == 8
    assert served(streams(made), Cache()).hit_rate == 14 / 32


def test_two_caches_share_nothing() -> None:
    stream = packed([1, 2, 3])
    assert shared_tokens([("a", stream), ("b", stream), ("a", stream)]) == [0, 0, 2]
    assert served([("a", stream), ("b", stream), ("a", stream)], Cache(1, 100)).hit_tokens == 2
