"""Token ids as items of the cache models."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

from harness.cache.base import Item

NAMESPACES = 256
"""How many have their items kept."""
_IDS = 2**32


def items(ids: Iterable[int], namespace: str = "") -> list[Item]:
    """An item of one token for each id; those of different namespaces are different.

    Equal tokens are one object, so that long prompts are compared fast.
    """
    table = _table(namespace)
    return [table[token] for token in ids]


class _Table(dict[int, Item]):
    """The items of one namespace by token id, made as they are met."""

    def __init__(self, number: int) -> None:
        self._first = number * _IDS

    def __missing__(self, token: int) -> Item:
        item = self[token] = (self._first + token, 1)
        return item


@lru_cache(NAMESPACES)
def _table(namespace: str) -> _Table:
    if not namespace:
        return _Table(0)
    return _Table(int.from_bytes(blake2b(namespace.encode(), digest_size=8).digest()))
