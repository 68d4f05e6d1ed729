"""What prompts share with those before them, and what of it a cache serves."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from harness.cache.base import Item
from harness.cache.reuse_distance import reuse_distances
from harness.lint.tokens import common_tokens
from harness.traces.token_stream import TOKEN_BYTES

BLOCK_TOKENS = 16
"""Of a cache with a capacity, if nothing else is said: vLLM's default."""

Stream = tuple[Hashable, bytes]
"""The cache that a prompt belongs to, and its tokens."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache that hit rates are told of. By default infinite, and exact to the token."""

    block_tokens: int = 1
    """Only whole blocks are reused."""
    capacity_tokens: int | None = None
    """None: it never evicts."""


@dataclass(frozen=True, slots=True)
class Served:
    """Tokens of all prompts, and how many of them the cache had."""

    prompt_tokens: int
    hit_tokens: int

    @property
    def hit_rate(self) -> float:
        return self.hit_tokens / self.prompt_tokens


def shared_tokens(streams: Iterable[Stream]) -> list[int]:
    """For each prompt the tokens that it shares with one before it, at most all but its last.

    In the order of their bytes, the prompt that shares most with another stands next to it.
    """
    seen: dict[Hashable, list[bytes]] = {}
    shared = []
    for cache, stream in streams:
        before = seen.setdefault(cache, [])
        place = bisect_left(before, stream)
        most = max((common_tokens(stream, other) for other in before[max(0, place - 1) : place + 1]), default=0)
        shared.append(max(0, min(most, len(stream) // TOKEN_BYTES - 1)))
        insort(before, stream)
    return shared


def served(streams: Sequence[Stream], cache: Cache) -> Served:
    """Requests in the order of the log, each finished before the next; answers are not kept."""
    prompt_tokens = sum(len(stream) // TOKEN_BYTES for _, stream in streams)
    if cache.capacity_tokens is None:
        block = cache.block_tokens
        return Served(prompt_tokens, sum(tokens // block * block for tokens in shared_tokens(streams)))
    ids: dict[tuple[Hashable, bytes], int] = {}
    step = cache.block_tokens * TOKEN_BYTES

    def items(of: Hashable, stream: bytes) -> list[Item]:
        blocks = (stream[start : start + step] for start in range(0, len(stream), step))
        return [(ids.setdefault((of, block), len(ids)), len(block) // TOKEN_BYTES) for block in blocks]

    distances = reuse_distances([items(*stream) for stream in streams], cache.block_tokens)
    return Served(prompt_tokens, round(distances.hit_tokens(cache.capacity_tokens)))
