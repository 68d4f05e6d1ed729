"""A sequence of tokens that a cache holds, or is asked for, with its length."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cache.base import Item, Prompt
from harness.cache.prompt import beginning, common_tokens, equal_items, tokens


@dataclass(frozen=True, slots=True)
class Held:
    """Items from the first token to the last, and how many tokens they are."""

    items: tuple[Item, ...]
    tokens: int

    @classmethod
    def of(cls, prompt: Prompt) -> Held:
        return cls(tuple(prompt), tokens(prompt))

    def common(self, other: Held) -> int:
        """Tokens of the longest common prefix."""
        if not self._one_by_one:
            return common_tokens(self.items, other.items)
        equal = equal_items(self.items, other.items)
        return equal + common_tokens(self.items[equal : equal + 1], other.items[equal : equal + 1])

    def begins(self, other: Held) -> bool:
        """Whether it is a prefix of `other`, or all of it."""
        return self.tokens <= other.tokens and self.common(other) == self.tokens

    def first(self, count: int) -> Held:
        """Its first `count` tokens; all of it if it has no more."""
        if count >= self.tokens:
            return self
        return Held(self.items[:count] if self._one_by_one else tuple(beginning(self.items, count)), count)

    def then(self, more: Prompt) -> Held:
        return Held((*self.items, *more), self.tokens + tokens(more))

    @property
    def _one_by_one(self) -> bool:
        """Whether each item is one token: then the work is that of comparing and copying, and no more."""
        return len(self.items) == self.tokens


NOTHING = Held((), 0)
