"""A sample of the blocks tells the curve within the error that it states."""

from __future__ import annotations

import math
import random

import pytest

from harness.cache.base import Prompt
from harness.cache.reuse_distance import reuse_distances

CAPACITIES = [100, 1_000, 3_000, 10_000, 30_000, 100_000, math.inf]


def chats(seed: int, requests: int = 1_500) -> list[Prompt]:
    """Sessions that all begin alike, grow by a few blocks a turn, and are taken up again sooner or later."""
    draw = random.Random(seed)
    sessions: list[list[tuple[int, int]]] = []
    made: list[Prompt] = []
    for number in range(requests):
        if not sessions or draw.random() < 0.2:
            sessions.append([(0, 16), (1, 16)])
        chosen = sessions[-1 - min(len(sessions) - 1, int(draw.expovariate(0.05)))]
        chosen += [(number * 100 + block + 2, 16) for block in range(draw.randint(1, 4))]
        made.append([*chosen, (-number - 1, draw.randint(1, 15))])
    return made


def scan(documents: int, rounds: int) -> list[Prompt]:
    """All documents in turn, again and again: the worst for LRU, all of it at one distance."""
    return [
        [(document * 100 + block, 16) for block in range(20)] + [(-1 - turn, 1)]
        for turn in range(rounds)
        for document in range(documents)
    ]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("requests", [*(chats(seed) for seed in range(4)), scan(150, 6)], ids=[*"0123", "scan"])
def test_the_true_hit_rate_lies_within_the_bounds(requests: list[Prompt], share: float) -> None:
    exact = reuse_distances(requests, 16)
    sampled = reuse_distances(requests, 16, share)
    assert len(sampled.distances_tokens) < len(exact.distances_tokens) * 0.8
    for capacity in CAPACITIES:
        low, high = sampled.bounds(capacity)
        assert low <= sampled.hit_rate(capacity) <= high
        assert low <= exact.hit_rate(capacity) <= high


def test_the_bounds_get_narrow_as_the_sample_grows() -> None:
    requests = chats(7)
    widths = []
    for share in (0.05, 0.2, 0.8):
        low, high = reuse_distances(requests, 16, share).bounds(math.inf)
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.03


def test_without_sampling_there_is_no_error() -> None:
    exact = reuse_distances(chats(1), 16)
    for capacity in CAPACITIES:
        assert set(exact.bounds(capacity)) == {exact.hit_rate(capacity)}


def test_what_always_hits_costs_no_error() -> None:
    # One block that all requests share, in the sample or not: its hits are known from the lengths alone.
    requests: list[Prompt] = [[(identity, 16), (9, 1)] for identity in range(12) for _ in range(200)]
    for share in (0.1, 0.3, 0.6):
        assert reuse_distances(requests, 16, share).hit_rate() == pytest.approx(199 / 200 * 16 / 17, abs=0.03)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_a_share_is_above_0_and_1_at_most(share: float) -> None:
    with pytest.raises(ValueError, match="sampled_share"):
        reuse_distances([[(1, 16)]], 16, share)


def test_an_empty_sample_knows_nothing_and_says_so() -> None:
    found = reuse_distances([[(1, 16), (2, 1)], [(1, 16), (2, 1)]], 16, 1e-9)
    assert len(found.distances_tokens) == 0
    assert found.capacity_serving(0.5) is None
    assert found.bounds() == (0, 32 / 34)
