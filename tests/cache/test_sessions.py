"""Long sessions with real texts: a model sees ids and lengths, its twin the words themselves."""

from __future__ import annotations

import pytest

from harness.cache.base import serve
from harness.cache.block_pool import BlockPool
from harness.cache.radix import RadixTree
from tests.cache.plain_block_pool import PlainBlockPool
from tests.cache.plain_radix import PlainRadixTree
from tests.cache.sessions import as_items, as_words, asked

REQUESTS = 150


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("blocks", "block_tokens"), [(110, 8), (30, 32), (300, 2)])
def test_a_block_pool_serves_sessions_as_by_the_rules(seed: int, blocks: int, block_tokens: int) -> None:
    model, twin = BlockPool(blocks, block_tokens), PlainBlockPool(blocks, block_tokens)
    endless, evicted, hit = BlockPool(None, block_tokens), 0, 0
    for request in asked(seed, REQUESTS):
        prompt, output = as_items(request.prompt), as_items(request.output)
        cached = serve(model, prompt, output)
        plain = twin.admit(as_words(request.prompt))
        twin.finish(plain, as_words(request.output))
        assert cached == plain.cached_tokens
        assert model.occupied_blocks == twin.occupied_blocks
        evicted += serve(endless, prompt, output) - cached
        hit += cached
    assert hit > 5000
    assert evicted > 1000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("capacity", "page", "chunk"), [(900, 1, None), (1024, 16, None), (900, 1, 64)])
def test_a_radix_tree_serves_sessions_as_by_the_rules(seed: int, capacity: int, page: int, chunk: int | None) -> None:
    model, twin, hit = RadixTree(capacity, page, chunk), PlainRadixTree(capacity, page, chunk), 0
    for request in asked(seed, REQUESTS):
        cached = serve(model, as_items(request.prompt), as_items(request.output))
        plain = twin.admit(as_words(request.prompt))
        twin.prefilled(plain)
        twin.finish(plain, as_words(request.output))
        assert cached == plain.cached_tokens
        assert model.stored_tokens == twin.stored_tokens
        assert model.evicted_tokens == twin.evicted_tokens
        hit += cached
    assert hit > 5000
    assert model.evicted_tokens > 2000
