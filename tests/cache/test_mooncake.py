"""Hit rates of public traces that are known from elsewhere. KVSWARM_TRACES names the folder that has the traces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cache.base import Prompt, serve
from harness.cache.block_pool import BlockPool
from harness.cache.prompt import items, tokens
from harness.cache.radix import RadixTree

BLOCK = 512
FOLDER = os.environ.get("KVSWARM_TRACES")
pytestmark = [
    pytest.mark.optional,
    pytest.mark.skipif(FOLDER is None, reason="KVSWARM_TRACES does not name a folder with traces"),
]


def prompts(name: str) -> list[Prompt]:
    """One id for every 512 tokens; the last block may be shorter."""
    assert FOLDER is not None
    rows = [json.loads(line) for line in (Path(FOLDER) / f"mooncake_{name}.jsonl").read_text().splitlines()]
    return [
        items(
            row["hash_ids"], [min(BLOCK, row["input_length"] - BLOCK * at) for at in range(len(row["hash_ids"]))], None
        )
        for row in rows
    ]


def hit_rate(cached_tokens: Callable[[Prompt], int], asked: list[Prompt]) -> float:
    return sum(cached_tokens(prompt) for prompt in asked) / sum(tokens(prompt) for prompt in asked)


@pytest.mark.parametrize(("name", "rate"), [("conversation", 0.3734), ("synthetic", 0.6504)])
def test_without_limit_both_models_find_all_that_can_be_found(name: str, rate: float) -> None:
    pool, tree, asked = BlockPool(None, BLOCK), RadixTree(None, BLOCK), prompts(name)
    assert hit_rate(lambda prompt: serve(pool, prompt, ()), asked) == pytest.approx(rate, abs=0.00005)
    assert hit_rate(lambda prompt: serve(tree, prompt, ()), asked) == pytest.approx(rate, abs=0.00005)


@pytest.mark.parametrize(("blocks", "rate"), [(1_000, 0.0868), (5_000, 0.2895), (10_000, 0.4430), (30_000, 0.6388)])
def test_a_pool_hits_what_an_lru_of_its_blocks_hits(blocks: int, rate: float) -> None:
    """Nearly: a last block that is not full takes room of the pool, and the LRU of the known answers has none."""
    pool = BlockPool(blocks + 1, BLOCK)
    assert hit_rate(lambda prompt: serve(pool, prompt, ()), prompts("synthetic")) == pytest.approx(rate, abs=0.0005)
