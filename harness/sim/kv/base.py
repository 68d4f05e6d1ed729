"""What every manner's cache tells of its room."""

from __future__ import annotations

from typing import Protocol, TypeVar

from harness.sim.generation import Generation

H_co = TypeVar("H_co", covariant=True)
"""What a request has of it."""


class Cache(Protocol[H_co]):
    """Tokens of KV cache: `capacity_tokens` are in use, evictable, or free."""

    @property
    def capacity_tokens(self) -> int: ...

    @property
    def used_tokens(self) -> int:
        """That requests under way hold."""
        ...

    @property
    def evictable_tokens(self) -> int:
        """Kept for reuse, and dropped where room is needed."""
        ...

    @property
    def evicted_tokens(self) -> int:
        """Dropped since the start."""
        ...

    def hold(self, generation: Generation) -> H_co:
        """What a request begins with: nothing of the cache yet."""
        ...

    def clear(self) -> None:
        """Drop everything. No request may be under way."""
        ...
