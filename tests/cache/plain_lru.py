"""An LRU cache of blocks as slow and plain as can be: every token written out, every capacity a cache of its own."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cache.base import Prompt

Tokens = tuple[tuple[int, int], ...]
"""A prompt token by token, each as (item id, place in the item)."""


def written_out(prompt: Prompt) -> Tokens:
    return tuple((identity, place) for identity, length in prompt for place in range(length))


def lru_hit_tokens(prompts: Sequence[Prompt], block_tokens: int, capacity_tokens: float) -> int:
    """Tokens that a cache serves: requests in order, tails touched before heads, then cut to capacity."""
    stack: list[Tokens] = []  # all tokens up to a block's end stand for the block; the last touched is the last
    hits = 0
    for prompt in prompts:
        tokens = written_out(prompt)
        blocks = [tokens[:end] for end in range(block_tokens, len(tokens) + 1, block_tokens)]
        for block in blocks[: (len(tokens) - 1) // block_tokens]:
            if block not in stack:
                break
            hits += block_tokens
        for block in reversed(blocks):
            if block in stack:
                stack.remove(block)
            stack.append(block)
        while len(stack) * block_tokens > capacity_tokens:
            stack.pop(0)
    return hits
