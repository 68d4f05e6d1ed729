from __future__ import annotations

from harness.cache.block_room import LimitedRoom


def test_of_blocks_that_hold_the_same_the_one_entered_first_is_found() -> None:
    room = LimitedRoom(3)
    first, second, third = room.take(3)
    room.enter([first, second, third], [7, 7, 7])
    room.release([third, second, first])
    assert room.take(1) == [first]  # freed first, so it is evicted first
    assert room.reuse([7]) == [second]
