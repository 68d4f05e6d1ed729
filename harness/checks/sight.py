"""How it shows whether a prompt was still in the cache: by cached tokens, or where nobody tells them, by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, Protocol

from harness.errors import TargetError

Source = Literal["usage", "counter", "clock"]
"""Cached tokens of the answer, how far the engine's own counter moved, or the time to the first token."""

PAIRS = 3
"""Prompts that are sent twice in order to learn what a hit looks like."""
SOONER = 1.5
"""By the clock a hit can be told if the slowest repeat came so many times sooner than the quickest cold prompt."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one request showed; None: not told."""

    usage_cached_tokens: int | None
    counter_cached_tokens: int | None
    ttft_ms: float | None

    def cached_tokens(self, source: Source) -> int | None:
        return self.usage_cached_tokens if source == "usage" else self.counter_cached_tokens


class Ask(Protocol):
    """Sends a prompt and waits for its answer, of one token."""

    def __call__(self, label: str, tokens: int, counted: bool = True) -> Seen:
        """`tokens` is the prompt's length; those with one label and length have the same text, others share nothing.

        `counted`: read the engine's counter, too. Raises TargetError if the request fails.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sight:
    """How a hit shows in prompts of one length."""

    source: Source
    whole: float
    """What a prompt shows right after it was sent: cached tokens, or ms by the clock."""
    nothing: float
    """What one shows that was never sent."""

    def share(self, seen: Seen) -> float:
        """Share of the prompt that was held, 0 to 1; by the clock 0 or 1.

        Raises TargetError if that is not told of this request.
        """
        if self.source == "clock":
            if seen.ttft_ms is None:
                raise TargetError("A request of the check has no time to its first token, so it ended: try it again")
            return float(seen.ttft_ms**2 < self.whole * self.nothing)  # nearer to a hit, as a ratio
        cached = seen.cached_tokens(self.source)
        if cached is None:
            raise TargetError(
                "The target stopped telling how many prompt tokens were cached in the middle of the check: "
                "try it again while nothing else loads the target"
            )
        return min(1.0, max(0.0, (cached - self.nothing) / (self.whole - self.nothing)))


@dataclass(frozen=True, slots=True)
class NoSight:
    """A prompt that was sent twice in a row shows no hit."""

    is_counted: bool
    """The engine counts cached tokens, and counted none; False: nobody counts, and the clock shows no difference."""


def learn_sight(ask: Ask, label: str, tokens: int) -> Sight | NoSight:
    """Send `PAIRS` new prompts, each twice in a row, and take the first source that tells them apart.

    The counter is read, of as many prompts more, only where the answers tell nothing.
    """
    is_counted = False
    pairs: list[tuple[Seen, Seen]] = []
    sources: tuple[Source, ...] = ("usage", "counter")
    for source in sources:
        names = [f"{label}/{source} {number}" for number in range(PAIRS)]
        counted = source == "counter"
        pairs = [(ask(name, tokens, counted=counted), ask(name, tokens, counted=counted)) for name in names]
        cold = _all([seen.cached_tokens(source) for seen, _ in pairs])
        warm = _all([seen.cached_tokens(source) for _, seen in pairs])
        if cold is None or warm is None:
            continue
        is_counted = True
        whole, nothing = median(warm), median(cold)
        if whole - nothing > tokens / 4:
            return Sight(source, whole, nothing)
    slow, fast = _all([seen.ttft_ms for seen, _ in pairs]), _all([seen.ttft_ms for _, seen in pairs])
    if slow is not None and fast is not None and min(slow) > SOONER * max(fast) > 0:
        return Sight("clock", median(fast), median(slow))
    return NoSight(is_counted)


def _all(values: Sequence[float | None]) -> list[float] | None:
    """None if one is not known."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None
