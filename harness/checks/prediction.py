"""What the engines' rules say that a prompt hits, and which block sizes explain what it did hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.manifest import Probe


def cached_tokens(shared_tokens: int, prompt_tokens: int, granularity_tokens: int) -> int:
    """Hit of a prompt that shares its first `shared_tokens` with one sent before.

    cached = floor(min(shared, prompt - 1) / G) * G, with G the block or page (1: token by token). The last token of a
    prompt is always computed, as the first answer token comes from it.
    """
    return min(shared_tokens, prompt_tokens - 1) // granularity_tokens * granularity_tokens


@dataclass(frozen=True, slots=True)
class Observation:
    """One request of the check: what it shared with those before it, and what the engine counted."""

    name: str
    planned_tokens: int
    """Length of the prompt."""
    least_shared: int
    """Tokens that it surely shares with what was sent before."""
    most_shared: int
    """Tokens that it may share: more than the least where pieces of the template cannot be placed."""
    prompt_tokens: int | None
    usage_cached_tokens: int | None
    counter_cached_tokens: int | None
    ttft_ms: float | None

    @property
    def length(self) -> int:
        """Prompt tokens as the engine counted, else as planned."""
        return self.planned_tokens if self.prompt_tokens is None else self.prompt_tokens

    @property
    def counts(self) -> list[int]:
        """Every count of its hit that there is, the answer's first."""
        return [count for count in (self.usage_cached_tokens, self.counter_cached_tokens) if count is not None]

    def bounds(self, granularity_tokens: int) -> tuple[int, int]:
        """Least and greatest hit by the rules."""
        least = cached_tokens(self.least_shared, self.length, granularity_tokens)
        return least, cached_tokens(self.most_shared, self.length, granularity_tokens)

    def fits(self, count: int, granularity_tokens: int) -> bool:
        least, greatest = self.bounds(granularity_tokens)
        return least <= count <= greatest and count % granularity_tokens == 0

    def probe(self, granularity_tokens: int | None) -> Probe:
        """As it is recorded; `granularity_tokens` is what the engine tells, None if it does not."""
        # What shares nothing is expected to hit nothing whatever the block is; the smallest allows most.
        knows_rule = granularity_tokens is not None or self.least_shared == 0
        least, greatest = self.bounds(granularity_tokens or 1)
        return Probe(
            name=self.name,
            prompt_tokens=self.prompt_tokens,
            expected_cached_tokens=least if knows_rule else None,
            allowance_tokens=greatest - least if knows_rule else 0,
            usage_cached_tokens=self.usage_cached_tokens,
            counter_cached_tokens=self.counter_cached_tokens,
            ttft_ms=self.ttft_ms,
        )


def granularities(observed: Sequence[Observation]) -> list[int]:
    """Every block size that explains the first count of each observation; empty if nothing was hit, or if none does."""
    known = [(observation, observation.counts[0]) for observation in observed if observation.counts]
    if not any(count for _, count in known):
        return []
    # One block for all but the last token would be a cache that keeps whole prompts only, whatever its blocks.
    longest = max(observation.length for observation, _ in known)
    return [
        size for size in range(1, longest - 1) if all(observation.fits(count, size) for observation, count in known)
    ]


def loses_a_block(observed: Sequence[Observation], granularity_tokens: int) -> bool:
    """Whether every hit is one block shorter than the rules say."""
    short = [one.bounds(granularity_tokens)[0] - one.counts[0] for one in observed if one.least_shared and one.counts]
    return bool(short) and set(short) == {granularity_tokens}
