"""The physical blocks of a pool: which are held, which can be found again, which is taken next."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Protocol


class Room(Protocol):
    """Blocks are ints without a meaning; what they hold has a number (see `BlockNumbers`), above 0."""

    def reuse(self, numbers: Iterable[int]) -> list[int]:
        """Take hold of the blocks with the leading `numbers` that can be found."""
        ...

    def take(self, count: int) -> list[int]:
        """Take hold of `count` blocks that hold nothing."""
        ...

    def enter(self, blocks: Sequence[int], numbers: Sequence[int]) -> None:
        """From now on each block is found under its number."""
        ...

    def release(self, blocks: Sequence[int]) -> None:
        """Let go of blocks, the last one first."""
        ...

    @property
    def occupied(self) -> int:
        """Number of blocks that are held or can be found."""
        ...

    def known(self, numbers: Iterable[int]) -> int:
        """How many of the leading `numbers` can be found."""
        ...

    def unheld(self, numbers: Iterable[int]) -> int:
        """How many of the blocks with these `numbers`, which can be found, nobody holds."""
        ...

    held: int
    """Number of blocks that somebody holds; in a room without end, one that several hold counts for each of them."""
    evicted: int
    """How often a block that could be found was taken."""

    @property
    def free(self) -> float:
        """Number of blocks that nobody holds."""
        ...


class LimitedRoom:
    """A queue of free blocks, and an index of those that can be found.

    Free blocks without a number are always taken before those with one, as the engine puts them at the front of its
    queue when they are freed. They hold nothing, so which of them is taken makes no difference.
    """

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self._occupied = 0
        """More than `blocks` while some are lent that the pool does not have."""
        self.held = 0
        self.evicted = 0
        self._unused: list[int] = []
        """Blocks that hold nothing; those that never held anything are not made yet."""
        self._free: OrderedDict[int, None] = OrderedDict()
        """Free blocks with a number, the next to be taken first."""
        self._holders: list[int] = []
        """Requests that hold it, by block."""
        self._numbers: list[int] = []
        """By block; 0: it cannot be found."""
        self._found: dict[int, int] = {}
        """By number, the block that was entered first."""
        self._equal: dict[int, list[int]] = {}
        """By number, the other blocks that hold the same, in the order of their entry."""

    def reuse(self, numbers: Iterable[int]) -> list[int]:
        reused = []
        for number in numbers:
            block = self._found.get(number)
            if block is None:
                break
            if not self._holders[block]:
                del self._free[block]
                self.held += 1
            self._holders[block] += 1
            reused.append(block)
        return reused

    def take(self, count: int) -> list[int]:
        return [self._take_one() for _ in range(count)]

    def enter(self, blocks: Sequence[int], numbers: Sequence[int]) -> None:
        for block, number in zip(blocks, numbers, strict=True):
            self._numbers[block] = number
            if self._found.setdefault(number, block) != block:
                self._equal.setdefault(number, []).append(block)

    def release(self, blocks: Sequence[int]) -> None:
        for block in reversed(blocks):
            self._holders[block] -= 1
            if self._holders[block]:
                continue
            self.held -= 1
            if self._numbers[block] and self._occupied <= self._blocks:
                self._free[block] = None
                continue
            if self._numbers[block]:
                self._forget(block)
            self._unused.append(block)
            self._occupied -= 1

    @property
    def occupied(self) -> int:
        return self._occupied

    def known(self, numbers: Iterable[int]) -> int:
        return sum(1 for _ in takewhile(self._found.__contains__, numbers))

    def unheld(self, numbers: Iterable[int]) -> int:
        return sum([not self._holders[self._found[number]] for number in numbers])

    @property
    def free(self) -> float:
        return self._blocks - self.held

    def _take_one(self) -> int:
        self.held += 1
        if self._free and self._occupied >= self._blocks:
            block, _ = self._free.popitem(last=False)
            self._forget(block)
            self.evicted += 1
            self._holders[block] = 1
            return block
        self._occupied += 1
        if self._unused:
            block = self._unused.pop()
            self._holders[block] = 1
            return block
        self._holders.append(1)
        self._numbers.append(0)
        return len(self._holders) - 1

    def _forget(self, block: int) -> None:
        number = self._numbers[block]
        self._numbers[block] = 0
        equal = self._equal.get(number)
        if equal is None:
            del self._found[number]
            return
        if self._found[number] == block:
            self._found[number] = equal.pop(0)
        else:
            equal.remove(block)
        if not equal:
            del self._equal[number]


class EndlessRoom:
    """Room for everything: nothing is ever taken away, so it does not matter which block holds what."""

    def __init__(self) -> None:
        self._found: set[int] = set()
        self.held = 0
        self.evicted = 0

    def reuse(self, numbers: Iterable[int]) -> list[int]:
        count = self.known(numbers)
        self.held += count
        return [0] * count

    def take(self, count: int) -> list[int]:
        self.held += count
        return [0] * count

    def enter(self, blocks: Sequence[int], numbers: Sequence[int]) -> None:
        self._found.update(numbers)

    def release(self, blocks: Sequence[int]) -> None:
        self.held -= len(blocks)

    @property
    def occupied(self) -> int:
        return len(self._found)

    def known(self, numbers: Iterable[int]) -> int:
        return sum(1 for _ in takewhile(self._found.__contains__, numbers))

    def unheld(self, numbers: Iterable[int]) -> int:
        return 0

    @property
    def free(self) -> float:
        return math.inf
