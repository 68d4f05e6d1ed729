from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from harness.client.stamps import clock_offset_ns, has_stepped, kernel_stamp


def readings(*values: int) -> Callable[[], int]:
    return iter(values).__next__


def test_the_kernels_stamp_is_seconds_and_nanoseconds_since_the_epoch() -> None:
    assert kernel_stamp([(1, 35, struct.pack("@qq", 1_795_962_707, 5))]) == 1_795_962_707_000_000_005


def test_the_offset_is_realtime_minus_the_middle_of_two_monotonic_readings() -> None:
    assert clock_offset_ns(readings(1_000_000), readings(100, 300)) == 1_000_000 - 200


def test_losing_the_processor_between_two_readings_does_not_look_like_a_step() -> None:
    # First try: 50 ms pass between the monotonic readings. Second try: 100 ns, the offset is 1,000,000.
    offset = clock_offset_ns(readings(1_000_000, 51_000_250), readings(0, 50_000_000, 50_000_200, 50_000_300))
    assert offset == 1_000_000
    assert not has_stepped(1_000_000, offset)


def test_the_tightest_of_several_poor_tries_counts() -> None:
    monotonic = readings(0, 100_000, 0, 60_000, 0, 90_000, 0, 80_000, 0, 70_000)
    assert clock_offset_ns(readings(*[500_000] * 5), monotonic) == 500_000 - 30_000


@pytest.mark.parametrize(("after_ns", "stepped"), [(0, False), (999_999, False), (1_000_001, True), (-2_000_000, True)])
def test_a_change_beyond_a_millisecond_in_either_direction_is_a_step(after_ns: int, stepped: bool) -> None:
    assert has_stepped(0, after_ns) is stepped
