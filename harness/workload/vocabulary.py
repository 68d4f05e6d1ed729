"""Which words are one token each: found with few questions to the target's tokeniser, by group testing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

FIRST_GROUP, LARGEST_GROUP = 16, 128
"""Words asked about at once. A group grows after a success and shrinks after a failure."""


class WordSearch:
    """A search for words that are one token each when a space stands before them.

    `count` gives the tokens of a text up to a constant, such as those of a chat that holds it. A text of n words has n
    tokens more than one of none exactly if each word is one; otherwise its halves are asked about.
    """

    def __init__(self, count: Callable[[str], int], most_calls: int) -> None:
        self.found: list[str] = []
        self.tried = 0
        """Words that are known to be one token or not."""
        self._count = count
        self._calls_left = most_calls - 1
        self._base = count("")

    def run(self, candidates: Sequence[str], wanted: int) -> tuple[str, ...]:
        """At most `wanted` of the `candidates`, in their order; fewer if there are not so many, or if calls run out."""
        position, size = 0, FIRST_GROUP
        while position < len(candidates) and len(self.found) < wanted and self._calls_left > 0:
            group = candidates[position : position + min(size, wanted - len(self.found))]
            excess = self._excess(group)
            self._sift(group, excess)
            size = min(size * 2, LARGEST_GROUP) if excess == 0 else max(size // 2, FIRST_GROUP // 2)
            position += len(group)
        return tuple(self.found)

    def _sift(self, group: Sequence[str], excess: int) -> None:
        """Keep the one-token words of a group whose text has `excess` tokens more than words."""
        if excess == 0:
            self.found += group
            self.tried += len(group)
        elif len(group) == 1:
            self.tried += 1
        elif self._calls_left > 0:
            left, right = group[: len(group) // 2], group[len(group) // 2 :]
            excess_left = self._excess(left)
            self._sift(left, excess_left)
            self._sift(right, excess - excess_left)

    def _excess(self, group: Sequence[str]) -> int:
        self._calls_left -= 1
        return self._count("".join(f" {word}" for word in group)) - self._base - len(group)
