"""What evict finds is what each engine's cache holds: held against the cache models."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harness.cache.base import CacheModel
from harness.cache.block_pool import BlockPool
from harness.cache.entries import Entries
from harness.cache.radix import RadixTree
from harness.cache.slots import Slots
from harness.checks.evict_measure import Lengths, Measured, Told, choose_lengths, measure
from harness.checks.evict_order import named
from harness.checks.sight import NoSight, Source
from tests.checks.filled import HEAD, TAIL, Filled, Shelf

LRU = "least-recently-used"


def tiered(slots: int, mib: int) -> Slots:
    """Slots of 2,048 tokens and a tier in host memory for states of the tiny model's size."""
    return Slots(slots, slots * 2048, host_bytes=mib << 20, bytes_per_token=6156, bytes_per_state=328)


def found(model: CacheModel[Any], told: Told, source: Source = "usage") -> Measured:
    lengths = choose_lengths(HEAD + TAIL, told)
    assert lengths is not None
    measured = measure(Filled(model, source), lengths, told, lambda: False)
    assert isinstance(measured, Measured)
    return measured


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("context", [512, 2048, 8192])
def test_slots_are_counted_and_filled(slots: int, context: int) -> None:
    told = Told(context, context if slots == 1 else None, 1, slots)
    measured = found(Slots(slots, slots * context), told)
    assert (measured.kind, measured.prompts) == ("prompts", slots)
    assert measured.capacity_tokens == pytest.approx(slots * context, rel=0.05)
    assert measured.order == (LRU if slots > 1 else None)


def test_slots_that_share_a_buffer_hold_its_tokens() -> None:
    measured = found(Slots(4, 4096, unified=True), Told(4096, None, 1, 4))
    assert (measured.kind, measured.prompts, measured.long_prompts) == ("both", 4, 1)
    assert measured.capacity_tokens == pytest.approx(4096, rel=0.05)


@pytest.mark.parametrize("mib", [4, 8, 20])
@pytest.mark.parametrize("slots", [2, 4])
def test_what_comes_back_from_host_memory_is_held(slots: int, mib: int) -> None:
    def is_held(others: int) -> bool:
        ask = Filled(tiered(slots, mib))
        for label in range(others + 1):
            ask(f"{label}", short)
        return ask("0", short).usage_cached_tokens == short - 1

    measured = found(tiered(slots, mib), Told(2048, None, 1, slots))
    short = measured.lengths.short
    one_by_one = next(number for number in range(100) if not is_held(number + 1)) + 1
    # Idle slots are saved by number, not by age: what came before decides about one prompt.
    assert measured.prompts is not None
    assert abs(measured.prompts - one_by_one) <= 1
    assert measured.prompts > slots
    assert measured.order == LRU


def test_a_tier_that_holds_no_long_prompt_adds_nothing_to_the_tokens() -> None:
    measured = found(tiered(2, 8), Told(2048, None, 1, 2))
    assert measured.kind == "both"
    assert measured.capacity_tokens == pytest.approx(4096, rel=0.05)


@pytest.mark.parametrize("entries", [1, 2, 4, 10, 40])
def test_entries_are_counted(entries: int) -> None:
    measured = found(Entries(entries), Told(granularity_tokens=1))
    assert (measured.kind, measured.prompts) == ("prompts", entries)
    assert measured.order == (LRU if entries > 1 else None)  # a repeated prompt is stored anew


@pytest.mark.parametrize("block", [1, 16, 128])
@pytest.mark.parametrize("blocks", [64, 129, 1000])
def test_a_pool_of_blocks_is_measured(blocks: int, block: int) -> None:
    capacity = max(blocks * block, 4096 // block * block)
    measured = found(BlockPool(capacity // block, block), Told(capacity, capacity, block))
    assert measured.capacity_tokens == pytest.approx(capacity - block, rel=0.03)
    assert measured.long.loses_its_end
    assert measured.order == LRU


@pytest.mark.parametrize("page", [1, 64])
@pytest.mark.parametrize("capacity", [4096, 16_384, 131_072])
def test_a_radix_tree_is_measured(capacity: int, page: int) -> None:
    measured = found(RadixTree(capacity, page), Told(capacity // 2, capacity, page))
    assert measured.capacity_tokens == pytest.approx(capacity, rel=0.03)
    assert not measured.long.loses_its_end
    assert measured.kind == "tokens"
    assert measured.order == LRU


@pytest.mark.parametrize(
    ("model", "capacity"), [(BlockPool(1000, 16), 15_984), (RadixTree(20_000), 20_000), (BlockPool(129, 32), 4096)]
)
def test_an_engine_that_tells_nothing_is_measured_alike(model: CacheModel[Any], capacity: int) -> None:
    measured = found(model, Told())
    assert measured.kind == "tokens"
    assert measured.capacity_tokens == pytest.approx(capacity, rel=0.03)
    assert measured.order == LRU


def test_a_wrong_claim_is_found_out() -> None:
    measured = found(RadixTree(10_000), Told(8192, 40_000, 1))
    assert measured.capacity_tokens == pytest.approx(10_000, rel=0.03)


@pytest.mark.parametrize("source", ["counter", "clock"])
def test_without_counts_in_the_answers_the_same_is_found(source: Source) -> None:
    slots = found(Slots(3, 3 * 2048), Told(2048, None, 1, 3), source)
    tree = found(RadixTree(16_384), Told(8192, 16_384, 1), source)
    assert slots.source == tree.source == source
    assert (slots.kind, slots.prompts, slots.order) == ("prompts", 3, LRU)
    assert tree.capacity_tokens == pytest.approx(16_384, rel=0.03)


@pytest.mark.parametrize("size", [2, 5, 12])
def test_first_in_first_out_is_told_from_least_recently_used(size: int) -> None:
    assert found(Shelf(size, refreshes=True), Told()).order == LRU
    assert found(Shelf(size, refreshes=False), Told()).order == "first-in-first-out"


def test_a_cache_that_gives_up_what_came_last_is_neither() -> None:
    assert named(again=1.0, once=1.0) == "newest-first"
    assert named(again=0.0, once=0.3) == "neither"
    assert named(again=1.0, once=0.3) == LRU
    assert named(again=0.3, once=1.0) == "first-in-first-out"


def test_a_hundred_caches_of_any_size() -> None:
    draw = random.Random(7)
    for _ in range(25):
        slots, context = draw.randint(2, 8), 256 * draw.randint(3, 20)
        filled = found(Slots(slots, slots * context), Told(context, None, 1, slots))
        assert filled.prompts == slots
        assert filled.capacity_tokens == pytest.approx(slots * context, rel=0.05)
        entries = draw.randint(2, 30)
        assert found(Entries(entries), Told()).prompts == entries
        block = draw.choice([1, 16, 32])
        capacity = block * draw.randint(4096 // block, 40_000 // block)
        told = Told(draw.choice([2048, capacity // 2]), capacity, block)
        pool, tree = found(BlockPool(capacity // block, block), told), found(RadixTree(capacity, block), told)
        assert pool.capacity_tokens == pytest.approx(capacity - block, rel=0.03)
        assert tree.capacity_tokens == pytest.approx(capacity, rel=0.04)
        assert pool.order == tree.order == LRU


def test_nothing_is_filled_where_a_repeat_shows_no_hit() -> None:
    ask = Filled(Entries(0))
    assert measure(ask, Lengths(200, 2000, 1), Told(), lambda: False) == NoSight(is_counted=True)
    assert len(ask.prompts) == 12


def test_a_cache_without_end_is_not_found_when_the_time_is_over() -> None:
    ask = Filled(RadixTree(None))
    measured = measure(ask, Lengths(200, 2000, 1), Told(), lambda: len(ask.prompts) > 300)
    assert isinstance(measured, Measured)
    assert measured.capacity_tokens is None
    assert measured.held_tokens >= 4000
    assert (measured.kind, measured.order) == (None, None)


@pytest.mark.parametrize(
    ("told", "wanted", "lengths"),
    [
        (Told(), None, Lengths(192, 2048, 1)),
        (Told(context_tokens=16_384), None, Lengths(192, 16_376, 1)),
        (Told(context_tokens=2048, slots=4, granularity_tokens=1), None, Lengths(192, 2040, 1)),
        (Told(8192, 32_768, 16), None, Lengths(192, 4096, 16)),
        (Told(8192, 1_000_000, 16), None, Lengths(192, 8176, 16)),
        (Told(8192, 32_768, 16), 1000, Lengths(192, 992, 16)),
        (Told(8192, 32_768, 256), None, Lengths(1024, 4096, 256)),
        (Told(128), None, None),
    ],
)
def test_lengths_suit_the_target(told: Told, wanted: int | None, lengths: Lengths | None) -> None:
    assert choose_lengths(12, told, wanted) == lengths
