"""A look into a cache finds what a request would find, and leaves everything as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Item, serve
from harness.cache.block_pool import BlockPool
from harness.cache.entries import Entries
from harness.cache.radix import RadixTree

MODELS: dict[str, Callable[[], Any]] = {
    "blocks": lambda: BlockPool(13, 4),
    "endless blocks": lambda: BlockPool(None, 4),
    "tokens": lambda: RadixTree(48),
    "pages": lambda: RadixTree(48, 4),
    "entries": lambda: Entries(3),
}
ITEMS = st.tuples(st.integers(1, 3), st.integers(1, 9))
PROMPTS = st.lists(st.lists(ITEMS, min_size=1, max_size=5), min_size=2, max_size=12)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@settings(deadline=None)
@given(prompts=PROMPTS)
def test_a_look_finds_what_a_request_would_and_changes_nothing(
    make: Callable[[], Any], prompts: list[list[Item]]
) -> None:
    looked_at, left_alone = make(), make()
    for prompt in prompts:
        for other in prompts:
            assert looked_at.peek(other) == copy.deepcopy(looked_at).admit(other).cached_tokens
        assert serve(looked_at, prompt, [(9, 2)]) == serve(left_alone, prompt, [(9, 2)])
