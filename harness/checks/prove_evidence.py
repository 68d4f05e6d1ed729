"""Three kinds of evidence of a prefix cache, each by itself: what answers report, what the engine counts, the clock."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.checks.prediction import cached_tokens
from harness.checks.prove_plan import AGAIN, COLD, Name
from harness.checks.prove_statistics import WANTED, Interval, chance_of, median_interval, spread

Counted = Literal["hit", "some", "none", "unknown"]
"""Most of the requests that sent a prefix again hit, some did, none did, or there are no counts."""
Timed = Literal["faster", "not-faster", "control-fast", "too-short", "unsure"]
"""control-fast: faster than cold, but so was the control, of which nothing can be cached. too-short: the prefix costs
so little that a hit would not show. unsure: the times differ too much from each other, or there are too few."""

LEAST_GAIN = 0.2
"""Share of what a full hit would save that counts as faster."""
LEAST_COST = 0.1
"""Share of the time to the first token that the prefix must cost for a hit to show."""
MOST_COST = 0.5
"""A prefix that costs so large a share of it is not too short, however much times vary."""
INEXACT_SHARE = 10
"""Where lengths are guessed, a cold prompt may hit one tenth of its tokens without being contaminated."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One request that was answered."""

    prefix: int
    name: Name
    prompt_tokens: int
    least_shared: int
    most_shared: int
    usage_cached_tokens: int | None
    counter_cached_tokens: int | None
    ttft_ms: float | None

    def expected(self, granularity_tokens: int | None) -> int:
        """What it hits at least by the rules; token by token if the block size is not known."""
        return cached_tokens(self.least_shared, self.prompt_tokens, granularity_tokens or 1)


Count = Callable[[Measure], int | None]


def by_usage(measure: Measure) -> int | None:
    return measure.usage_cached_tokens


def by_counter(measure: Measure) -> int | None:
    return measure.counter_cached_tokens


@dataclass(frozen=True, slots=True)
class Counts:
    """What one source of counts says."""

    state: Counted
    hits: int
    """Requests that sent a prefix again and hit at least half of what the rules say."""
    known: int
    """Such requests whose count is known."""
    cached_tokens: int
    """Of those, in all."""
    expected_tokens: int
    contaminated: tuple[Name, ...]
    """Kinds of requests that hit what nobody sent before."""


def counts(measures: Sequence[Measure], count: Count, granularity_tokens: int | None, exact: bool) -> Counts:
    """`exact`: prompts have the length that was planned."""
    again = [(one, count(one)) for one in measures if one.name in AGAIN]
    known = [(one, cached) for one, cached in again if cached is not None]
    hits = sum(2 * cached >= one.expected(granularity_tokens) > 0 for one, cached in known)
    fresh = [one.name for one in measures if one.name in COLD and (count(one) or 0) > _most(one, exact)]
    state: Counted = "some"
    if 2 * len(known) < len(again) or not known:
        state = "unknown"
    elif 2 * hits >= len(known):
        state = "hit"
    elif not hits:
        state = "none"
    return Counts(
        state=state,
        hits=hits,
        known=len(known),
        cached_tokens=sum(cached for _, cached in known),
        expected_tokens=sum(one.expected(granularity_tokens) for one, _ in known),
        contaminated=tuple(dict.fromkeys(fresh)),
    )


def _most(one: Measure, exact: bool) -> int:
    return one.most_shared if exact else max(one.most_shared, one.prompt_tokens // INEXACT_SHARE)


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Times to the first token of prompts that share nothing with any other, once the server was warm."""

    full_ms: tuple[float, ...]
    """As long as those with a prefix."""
    short_ms: tuple[float, ...]
    """As long as a question."""
    first_ms: float | None = None
    """The very first request's: what loading and warming up cost."""
    steady: bool = True


@dataclass(frozen=True, slots=True)
class Clock:
    """What the times to the first token say, prefix by prefix."""

    state: Timed
    to_cold: Interval | None
    """Warm over cold: the median of a prefix's warm times over its cold one. None: no prefix has both."""
    to_control: Interval | None
    """Warm over the control with another first token."""
    chance: float
    """That as many prefixes had a shorter warm time by chance."""
    cost_ms: float | None
    """What the prefix costs without any cache: unrelated prompts of full length less short ones."""
    noise_ms: float | None


def clock(measures: Sequence[Measure], unrelated: Unrelated) -> Clock:
    """Judge by paired prefixes: every comparison is between requests of one prefix, seconds apart."""
    pairs = [pair for prefix in dict.fromkeys(one.prefix for one in measures) if (pair := _times(measures, prefix))]
    if not pairs:
        return Clock("unsure", None, None, 1.0, None, None)
    to_cold = median_interval([warm / cold for cold, warm, _ in pairs])
    to_control = median_interval([warm / control for _, warm, control in pairs])
    chance = chance_of(sum(warm < cold for cold, warm, _ in pairs), len(pairs))
    cost_ms = noise_ms = None
    saving = 1.0
    if unrelated.full_ms and unrelated.short_ms:
        full_ms, short_ms = statistics.median(unrelated.full_ms), statistics.median(unrelated.short_ms)
        cost_ms, saving = full_ms - short_ms, (full_ms - short_ms) / full_ms
        fresh = [time for cold, _, control in pairs for time in (cold, control)]
        noise_ms = max(spread(fresh), spread(unrelated.short_ms))
    state = _timed(to_cold, to_control, saving, cost_ms, noise_ms)
    return Clock(state, to_cold, to_control, chance, cost_ms, noise_ms)


def _timed(
    to_cold: Interval, to_control: Interval, saving: float, cost_ms: float | None, noise_ms: float | None
) -> Timed:
    enough = 1 - LEAST_GAIN * max(saving, 0.0)
    is_drowned = cost_ms is not None and noise_ms is not None and cost_ms <= noise_ms
    # Where the prefix is most of the time and is drowned all the same, it is the noise that is too large.
    is_short = saving < LEAST_COST or (is_drowned and saving < MOST_COST)
    is_sooner = to_cold.median <= enough and to_cold.high < 1 and to_cold.confidence >= WANTED
    if is_sooner and to_control.median <= enough and to_control.high < 1 and saving >= LEAST_COST:
        return "faster"
    if is_short:
        return "too-short"
    if is_sooner and to_control.median > enough:
        return "control-fast"
    if is_drowned or to_cold.confidence < WANTED or to_cold.median <= enough:
        return "unsure"
    return "not-faster"


def _times(measures: Sequence[Measure], prefix: int) -> tuple[float, float, float] | None:
    """Cold, median of the warm ones, control; None if one of them is missing."""

    def times(*names: Name) -> list[float]:
        return [one.ttft_ms for one in measures if one.prefix == prefix and one.name in names and one.ttft_ms]

    cold, warm, control = times("cold"), times(*AGAIN), times("first")
    return (cold[0], statistics.median(warm), control[0]) if cold and warm and control else None
