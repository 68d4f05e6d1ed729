"""How far another clock is off, by exchanges of messages: never further from the truth than the error says."""

from __future__ import annotations

import random

import pytest

from harness.swarm.clock_offset import ClockOffset, Exchange, clock_offset

MS = 1_000_000


def exchange(at_ns: int, there_ns: int, back_ns: int, ahead_ns: int, thinking_ns: int = 0) -> Exchange:
    """A message that takes `there_ns` to a clock which is ahead by `ahead_ns`, and its answer `back_ns`."""
    seen_ns = at_ns + there_ns + ahead_ns
    return Exchange(at_ns, seen_ns, seen_ns + thinking_ns, at_ns + there_ns + thinking_ns + back_ns)


def test_equal_ways_tell_the_offset_exactly() -> None:
    found = clock_offset([exchange(1_000 * MS, 2 * MS, 2 * MS, ahead_ns=70 * MS, thinking_ns=9 * MS)])
    assert found == ClockOffset(70 * MS, 2 * MS)
    found = clock_offset([exchange(1_000 * MS, 2 * MS, 2 * MS, ahead_ns=-70 * MS)])
    assert found == ClockOffset(-70 * MS, 2 * MS)


def test_a_way_that_takes_longer_is_within_the_error() -> None:
    # All of 6 ms on the way there: the offset seems 3 ms larger, and the error is 3 ms.
    assert clock_offset([exchange(0, 6 * MS, 0, ahead_ns=10 * MS)]) == ClockOffset(13 * MS, 3 * MS)


def test_the_quickest_exchange_counts() -> None:
    slow, quick = exchange(0, 50 * MS, 2 * MS, 5 * MS), exchange(MS, MS, MS, 5 * MS)
    assert clock_offset([slow, quick, slow]) == ClockOffset(5 * MS, MS)


@pytest.mark.parametrize("seed", range(200))
def test_the_truth_is_within_the_error(seed: int) -> None:
    draw = random.Random(seed)
    ahead_ns = draw.randint(-(10**12), 10**12)
    ways = [(draw.randint(0, 10**8), draw.randint(0, 10**8)) for _ in range(draw.randint(1, 10))]
    found = clock_offset(exchange(draw.randint(0, 10**18), *way, ahead_ns, draw.randint(0, 10**7)) for way in ways)
    assert found is not None
    assert abs(found.offset_ns - ahead_ns) <= found.error_ns + 1  # rounded to whole ns
    assert found.error_ns <= min(sum(way) for way in ways) / 2 + 1


def test_without_an_exchange_nothing_is_known() -> None:
    assert clock_offset([]) is None
    # Their clock was set back by a second while the message was there.
    assert clock_offset([Exchange(0, 5 * MS, 1_005 * MS, 10 * MS)]) is None


def test_times_are_corrected_only_where_the_clocks_surely_differ() -> None:
    assert ClockOffset(5 * MS, 4 * MS).shift_ns == 5 * MS
    assert ClockOffset(-5 * MS, 4 * MS).shift_ns == -5 * MS
    assert ClockOffset(4 * MS, 4 * MS).shift_ns == 0


def test_a_clock_moved_by_what_no_error_explains() -> None:
    before = ClockOffset(10 * MS, MS)
    assert before.moved_ns(ClockOffset(15 * MS, 2 * MS)) == 2 * MS
    assert before.moved_ns(ClockOffset(5 * MS, 2 * MS)) == -2 * MS
    assert before.moved_ns(ClockOffset(12 * MS, 2 * MS)) == 0
