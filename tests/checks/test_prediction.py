"""What a prompt hits by the rules, and which block sizes explain a hit: against a block cache that is simply played."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.prediction import Observation, cached_tokens, granularities, loses_a_block
from harness.checks.prompts import Lengths


class BlockCache:
    """Keeps whole blocks, each with all that stands before it; serves no prompt's last token."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._kept: set[tuple[int, ...]] = set()

    def send(self, prompt: Sequence[int]) -> int:
        """Cached tokens of the prompt, which is kept."""
        ends = range(self._block, len(prompt) + 1, self._block)
        hit = 0
        for end in ends:
            if end > len(prompt) - 1 or tuple(prompt[:end]) not in self._kept:
                break
            hit = end
        self._kept |= {tuple(prompt[:end]) for end in ends}
        return hit


def observation(name: str, shared: int, cached: int | None, prompt: int = 1024, unplaced: int = 0) -> Observation:
    return Observation(name, prompt, shared, shared + unplaced, prompt, cached, None, None)


def played(block: int, lengths: Lengths) -> list[Observation]:
    """Repeat and half, as a cache with such blocks answers."""
    cache = BlockCache(block)
    first = list(range(lengths.prompt))
    cache.send(first)
    repeat = cache.send(first)
    half = cache.send(first[: lengths.half] + [-number for number in range(1, lengths.prompt - lengths.half + 1)])
    return [observation("repeat", lengths.prompt, repeat, lengths.prompt),
            observation("half", lengths.half, half, lengths.prompt)]  # fmt: skip


@given(st.integers(1, 40), st.integers(1, 200), st.data())
def test_cached_tokens_are_those_of_a_block_cache(block: int, prompt: int, data: st.DataObject) -> None:
    shared = data.draw(st.integers(0, prompt))
    cache = BlockCache(block)
    cache.send(list(range(prompt)))
    assert cached_tokens(shared, prompt, block) == cache.send([*range(shared), *[-1] * (prompt - shared)])


@pytest.mark.parametrize("prompt", [128, 256, 512, 1024, 2048])
def test_every_power_of_two_is_told_by_repeat_and_half(prompt: int) -> None:
    sizes = [1 << power for power in range(prompt.bit_length()) if 1 << power < prompt]
    for size in sizes:
        assert granularities(played(size, Lengths(prompt))) == [size]


@pytest.mark.parametrize("size", [272, 528, 544, 784])
def test_blocks_of_hybrid_models_are_told(size: int) -> None:
    assert granularities(played(size, Lengths(1024))) == [size]


@given(st.integers(1, 254))
def test_the_true_size_is_always_among_those_that_explain_the_counts(size: int) -> None:
    assert size in granularities(played(size, Lengths(256)))


def test_one_more_length_leaves_few_sizes_in_doubt() -> None:
    lengths = Lengths(256)
    doubtful = [0, 0]
    for size in range(1, 254):
        observed = played(size, lengths)
        doubtful[0] += len(granularities(observed)) > 1
        observed.append(observation("part", lengths.part, cached_tokens(lengths.part, 256, size), 256))
        doubtful[1] += len(granularities(observed)) > 1
    assert doubtful == [46, 4]


def test_no_size_is_told_by_no_hit() -> None:
    assert granularities([observation("repeat", 1024, 0), observation("half", 511, 0)]) == []
    assert granularities([observation("repeat", 1024, None), observation("half", 511, None)]) == []


def test_a_cache_of_whole_prompts_shows_no_block_size() -> None:
    assert granularities([observation("repeat", 1024, 1023), observation("half", 511, 0)]) == []


def test_a_template_that_cannot_be_placed_still_shows_the_size() -> None:
    """Up to 20 tokens of template may stand before the shared half: 496 is right for 511 as for 525."""
    assert granularities([observation("repeat", 1024, 1008), observation("half", 505, 496, unplaced=20)]) == [16]
    assert granularities([observation("repeat", 1024, 1008), observation("half", 505, 512, unplaced=20)]) == [16]


def test_probe_says_what_was_expected_and_what_is_allowed() -> None:
    cold = Observation("cold", 1024, 0, 40, 1024, 32, None, 12.5)
    assert (cold.probe(16).expected_cached_tokens, cold.probe(16).allowance_tokens) == (0, 32)
    assert (cold.probe(64).expected_cached_tokens, cold.probe(64).allowance_tokens) == (0, 0)
    half = observation("half", 511, 496)
    assert (half.probe(16).expected_cached_tokens, half.probe(16).allowance_tokens) == (496, 0)


def test_without_a_block_size_only_the_cold_prompt_has_an_expectation() -> None:
    cold, half = Observation("cold", 1024, 0, 8, None, None, None, None), observation("half", 511, 496)
    assert (cold.probe(None).expected_cached_tokens, cold.probe(None).allowance_tokens) == (0, 8)
    assert half.probe(None).expected_cached_tokens is None


def test_the_engines_own_count_of_the_prompt_decides_what_a_repeat_may_hit() -> None:
    counted = Observation("repeat", 1024, 1024, 1024, 1009, 1008, None, None)
    assert counted.bounds(16) == (1008, 1008)
    assert Observation("repeat", 1024, 1024, 1024, None, 1008, None, None).bounds(16) == (1008, 1008)


def test_a_lost_block_shows_in_every_hit() -> None:
    one_short = [observation("cold", 0, 0), observation("repeat", 1024, 992), observation("half", 511, 480)]
    assert loses_a_block(one_short, 16)
    assert not loses_a_block([*one_short[:2], observation("half", 511, 496)], 16)
    assert not loses_a_block([observation("repeat", 1024, None)], 16)
