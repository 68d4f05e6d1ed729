"""One pass tells what an LRU cache of any size serves."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Prompt
from harness.cache.block_references import block_hashes
from harness.cache.reuse_distance import reuse_distances
from tests.cache.plain_lru import lru_hit_tokens, written_out

TRACES = Path(os.environ.get("KVSWARM_TRACES", ""))
"""Where the public traces are, with their answers in a README."""

A, B, C, D = (1, 4), (2, 4), (3, 4), (4, 4)

items = st.tuples(st.integers(-1, 2), st.integers(1, 9))
prompts = st.lists(st.lists(items, min_size=1, max_size=5), min_size=1, max_size=12)
"""Few ids, so that prompts share beginnings; lengths that fit no block, and one id with several."""


def test_a_distance_is_what_was_touched_since_the_last_use_and_the_block_itself() -> None:
    # Touches: B A, C, B A, and the last token of every prompt is computed: B, which ends its prompt, cannot hit.
    found = reuse_distances([[A, B], [C], [A, B]], 4)
    assert found.distances_tokens.tolist() == [8, math.inf]
    assert found.hit_tokens(7) == 0
    assert found.hit_tokens(8) == 4
    assert found.hit_rate(8) == 4 / 20
    assert found.first_uses == 1


def test_the_tail_of_a_prompt_is_evicted_before_its_head() -> None:
    found = reuse_distances([[A, B, C], [D], [A, B, C, (9, 1)]], 4)
    # After D the stack is D A B C.
    assert [found.hit_tokens(capacity) for capacity in (4, 8, 12, 16)] == [0, 4, 8, 12]


def test_a_block_counts_with_all_that_stands_before_it() -> None:
    found = reuse_distances([[A, B, (9, 1)], [C, B, (9, 1)]], 4)
    assert found.hit_tokens() == 0
    assert found.capacity_serving(0.9) is None


@given(prompts, st.integers(1, 6), st.integers(0, 60))
@settings(max_examples=200, deadline=None)
def test_every_capacity_is_as_a_cache_of_that_size_does_it(
    requests: list[Prompt], block_tokens: int, capacity_tokens: int
) -> None:
    found = reuse_distances(requests, block_tokens)
    for capacity in (capacity_tokens, math.inf):
        assert found.hit_tokens(capacity) == lru_hit_tokens(requests, block_tokens, capacity)
    assert found.prompt_tokens == sum(len(written_out(prompt)) for prompt in requests)


@given(prompts, st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.9, 1.0]))
@settings(max_examples=200, deadline=None)
def test_the_smallest_capacity_for_a_share_serves_it_and_a_smaller_one_does_not(
    requests: list[Prompt], block_tokens: int, share: float
) -> None:
    found = reuse_distances(requests, block_tokens)
    possible = lru_hit_tokens(requests, block_tokens, math.inf)
    capacity = found.capacity_serving(share)
    if not possible:
        assert capacity is None
        return
    assert capacity is not None
    assert lru_hit_tokens(requests, block_tokens, capacity) >= share * possible
    assert lru_hit_tokens(requests, block_tokens, capacity - 1) < share * possible


@given(prompts, st.integers(1, 6))
@settings(max_examples=200, deadline=None)
def test_blocks_are_equal_exactly_if_all_tokens_up_to_their_end_are(requests: list[Prompt], block_tokens: int) -> None:
    meaning: dict[int, object] = {}
    for prompt in requests:
        tokens = written_out(prompt)
        hashes = block_hashes(prompt, block_tokens)
        assert len(hashes) == len(tokens) // block_tokens
        for number, value in enumerate(hashes, start=1):
            assert meaning.setdefault(value, tokens[: number * block_tokens]) == tokens[: number * block_tokens]
    assert len(set(meaning.values())) == len(meaning)


@pytest.mark.optional
@pytest.mark.skipif(not (TRACES / "mooncake_conversation.jsonl").is_file(), reason="KVSWARM_TRACES names no traces")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conversation", [0.3734, 0.0459, 0.1209, 0.2193, 0.3371, 0.3632, 0.3710]),
        ("synthetic", [0.6504, 0.0868, 0.2895, 0.4430, 0.6388, 0.6504, 0.6504]),
    ],
)
def test_the_known_answers_of_public_traces(name: str, expected: list[float]) -> None:
    requests = []
    for line in (TRACES / f"mooncake_{name}.jsonl").read_text().splitlines():
        row = json.loads(line)
        rest = row["input_length"] - 512 * (len(row["hash_ids"]) - 1)
        requests.append([(one, 512) for one in row["hash_ids"][:-1]] + [(row["hash_ids"][-1], rest)])
    found = reuse_distances(requests, 512)
    capacities = [math.inf, *(blocks * 512 for blocks in (1_000, 5_000, 10_000, 30_000, 50_000, 100_000))]
    assert [round(found.hit_rate(capacity), 4) for capacity in capacities] == expected
    for share in (0.02, 0.1, 0.5):
        sampled = reuse_distances(requests, 512, share)
        for capacity in capacities:
            low, high = sampled.bounds(capacity)
            assert low <= found.hit_rate(capacity) <= high
