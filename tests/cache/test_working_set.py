from __future__ import annotations

from harness.cache.block_references import block_references
from harness.cache.working_set import working_set

A, B, C = (1, 4), (2, 4), (3, 4)


def test_blocks_in_use_and_blocks_of_later_use() -> None:
    used = working_set(block_references([[A, B], [C], [A], [A, B], [C, (4, 3)]], 4))
    assert used.distinct(0, 5) == 3
    assert used.distinct(1, 3) == 2
    assert used.distinct(2, 2) == 0
    # After request 0: A B; after 1: A B C; after 2: the same; after 3: C; after 4: nothing comes again.
    assert used.reusable().tolist() == [2, 3, 3, 1, 0]


def test_requests_without_a_full_block_use_none() -> None:
    used = working_set(block_references([[(1, 3)], [(1, 3)]], 4))
    assert used.distinct(0, 2) == 0
    assert used.reusable().tolist() == [0, 0]
