"""What came back with a restored cache, and what that says: a pure function of counts and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.checks.sight import SOONER

Role = Literal["cold", "warm", "erased", "restored"]
"""One prompt asked for the first time; right after itself; after the cache was emptied; after it was restored."""
TOLERANCE_TOKENS = 1
"""Between what a warm and a restored request hit."""
LEAST_SHARE = 0.25
"""Of the prompt: what a warm request hits more than a cold one, at least, or nothing is cached."""

Verdict = Literal[
    "works",
    "partial",
    "not-restored",
    "no-hits",
    "off",
    "timing-differs",
    "not-erased",
    "unseen",
    "not-offered",
]
EXIT_CODES: Mapping[Verdict, int] = {
    "works": 0,
    "partial": 1,
    "not-restored": 1,
    "no-hits": 1,
    "off": 1,
    "timing-differs": 2,
    "not-erased": 2,
    "unseen": 2,
    "not-offered": 2,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for the prompt; None: not told."""

    role: Role
    cached_tokens: int | None
    ttft_ms: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """All requests, each role as often as there were rounds; cold is left out where another process asked it."""

    asked: tuple[Asked, ...]
    prompt_tokens: int
    head_tokens: int
    """At the beginning of every prompt, which any may hit, and a few words that may be the same by chance."""

    @property
    def counted(self) -> bool:
        return all(one.cached_tokens is not None for one in self.asked)

    def counts(self, role: Role) -> list[int]:
        """Empty where a request of the check told none."""
        return [one.cached_tokens or 0 for one in self.asked if one.role == role] if self.counted else []

    def times_ms(self, role: Role) -> list[float]:
        return [one.ttft_ms for one in self.asked if one.role == role and one.ttft_ms is not None]

    def cached_tokens(self, role: Role) -> float | None:
        """The median."""
        counts = self.counts(role)
        return median(counts) if counts else None

    def ttft_ms(self, role: Role) -> float | None:
        times = self.times_ms(role)
        return median(times) if times else None

    @property
    def quick(self) -> bool | None:
        """By the clock: whether restored requests were as quick as warm ones; None: it cannot tell, or they differ.

        It can if the slowest warm request came `SOONER` times sooner than the quickest one of an empty cache.
        """
        slow, fast = [*self.times_ms("cold"), *self.times_ms("erased")], self.times_ms("warm")
        restored = self.times_ms("restored")
        known = len(slow) + len(fast) + len(restored)
        if known < len(self.asked) or not fast or not slow or min(slow) <= SOONER * max(fast):
            return None
        limit_ms = (median(slow) * median(fast)) ** 0.5  # the border is where both are as near, as a ratio
        found = {time < limit_ms for time in restored}
        return found.pop() if len(found) == 1 else None


def judge(shown: Evidence) -> Verdict:
    """By tokens where they are told, and by the clock beside them; by the clock alone where they are not."""
    if not shown.counted:
        quick = shown.quick
        return "unseen" if quick is None else "works" if quick else "not-restored"
    warm, restored, erased = shown.counts("warm"), shown.counts("restored"), shown.counts("erased")
    empty = max([*shown.counts("cold"), *erased])
    if min(warm) - max([*shown.counts("cold"), 0]) < LEAST_SHARE * shown.prompt_tokens:
        return "no-hits"
    if empty > shown.head_tokens:
        return "not-erased"
    pairs: Sequence[tuple[int, int]] = list(zip(warm, restored, strict=True))
    if all(abs(one - other) <= TOLERANCE_TOKENS for one, other in pairs):
        return "timing-differs" if shown.quick is False else "works"
    return "not-restored" if max(restored) <= shown.head_tokens else "partial"
