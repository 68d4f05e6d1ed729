"""The verdict on one target in three sentences: does it work, what did it buy, what limits it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.analysis.flags import Flag
from harness.analysis.numbers import count, percent, with_unit
from harness.analysis.steps import Steps
from harness.analysis.summary import Summary
from harness.report.prefill import Prefill
from harness.report.tails import Tail

WORKS_FROM = 0.9
"""Share of the expected hits from which on the cache does what it should."""
LEAST_OF_EACH = 10
"""Hits and misses: a median of fewer than 6 has no 95 % interval at all, and requests that began together are alike."""
_LEAST_LOSS = 0.02
"""Of the prompt tokens: a smaller loss limits nothing."""
_LITTLE = 0.5
"""Of what could be reused: less than this is said to be little, even where the rules lead to expect no more."""
_LIMITS = {
    "granularity": (
        "The block size limits it",
        "were lost to whole blocks and last tokens; longer shared prefixes or smaller blocks lose less",
    ),
    "in_flight": (
        "Bursts limit it",
        "were still being computed when they were asked for again; send one request of a prefix first, or begin fewer "
        "sessions at once",
    ),
    "capacity": (
        "The KV memory limits it",
        "had been evicted before they were asked for again; more KV memory, fewer sessions at a time or shorter "
        "prompts keep more",
    ),
    "routing": ("Routing limits it", "were held by another replica or slot; route sessions by their prefix"),
    "unexplained": (
        "What the engine's rules do not explain limits it",
        "should have been there and were not reported; compare prompts with kvswarm lint, and look for other traffic",
    ),
}


def verdict(summary: Summary, tails: Sequence[Tail], cost: Prefill, doubts: Sequence[Flag]) -> list[str]:
    """Three sentences."""
    return [_works(summary), bought(tails, cost), _limits(summary, doubts)]


def _works(summary: Summary) -> str:
    hits, steps = summary.hit_rate, summary.waterfall.steps
    if hits.rate is None:
        if summary.counters.rate is None:
            return "Whether the cache works is not known: neither the answers nor the counters tell what was hit."
        by_counters = percent(summary.counters.rate)
        return (
            f"By the server's counters {by_counters} of the prompt tokens came from the cache; the answers do not tell."
        )
    of_all = f"{percent(hits.rate)} of {count(hits.prompt_tokens)} prompt tokens came from it"
    if not hits.cached_tokens:
        could = (
            f", though {percent(steps.shareable / steps.prompt_tokens)} could have" if steps and steps.shareable else ""
        )
        return f"The cache did not work: nothing of {count(hits.prompt_tokens)} prompt tokens came from it{could}."
    if steps is None or steps.measured is None or not steps.shareable:
        return f"The cache works: {of_all}."
    could = f"{percent(steps.measured / steps.shareable)} of what could be reused"
    if steps.expected and steps.measured < WORKS_FROM * steps.expected:
        return (
            f"The cache works less than it should: {of_all}, {could}, and "
            f"{percent(steps.expected / steps.prompt_tokens)} were expected."
        )
    if steps.measured < _LITTLE * steps.shareable:
        return f"The cache works by its rules, but serves only {could}: {of_all}."
    return f"The cache works: {of_all}, {could}."


def bought(tails: Sequence[Tail], cost: Prefill) -> str:
    """The second one."""
    by_which = {tail.which: tail for tail in tails}
    hit, miss = by_which.get("hit"), by_which.get("miss")
    saved = ""
    if cost.fit:
        saved = (
            f"; a thousand uncached tokens cost {with_unit(cost.fit.ms_per_1000)}, so hits saved about "
            f"{duration(cost.fit.saved_s)} of waiting, summed over all requests"
        )
    hits, misses = (0 if one is None else one.n for one in (hit, miss))
    if hit is None or miss is None or min(hits, misses) < LEAST_OF_EACH:
        have = (
            "hits" if not misses else "misses" if not hits else f"{_number(hits, 'hit')} and {_number(misses, 'miss')}"
        )
        lack = f"there are only {have}" if hit or miss else "there are no successful requests that tell what they hit"
        return f"What it bought in TTFT cannot be seen by comparison: {lack}{saved}."
    ratio = miss.p50_ms / hit.p50_ms if hit.p50_ms else 0
    words = (
        f"{ratio:,.1f} times as long as" if ratio >= 1.05 else "no longer than" if ratio <= 1 else "about as long as"
    )
    return (
        f"A miss waits {words} a hit for its first token: median TTFT {with_unit(miss.p50_ms)} "
        f"(n = {count(miss.n)}) against {with_unit(hit.p50_ms)} (n = {count(hit.n)}){saved}."
    )


def _limits(summary: Summary, doubts: Sequence[Flag]) -> str:
    if doubts and doubts[0].key == "check":
        return doubts[0].sentence
    if doubts:
        others = f", and {len(doubts) - 1} more flag{'s' if len(doubts) > 2 else ''} below" if len(doubts) > 1 else ""
        return f"These numbers are doubtful ({doubts[0].name}{others}). {doubts[0].sentence.rstrip('.')}."
    steps = summary.waterfall.steps
    if steps is None:
        return f"What limits it is not known: {summary.waterfall.unknown['steps']}."
    name, loss = max(steps.losses.items(), key=lambda item: item[1])
    if not steps.shareable:
        return "Nothing could be reused: no prompt began as one before it did."
    if loss < _LEAST_LOSS * steps.prompt_tokens:
        return f"Nothing limits it but the prompts: {_own(steps)} of their tokens were new."
    limit, what = _LIMITS[name]
    return f"{limit}: {percent(loss / steps.prompt_tokens)} of the prompt tokens {what}."


def _own(steps: Steps) -> str:
    return percent(1 - steps.shareable / steps.prompt_tokens)


def _number(n: int, what: str) -> str:
    return f"{count(n)} {what}" + ("" if n == 1 else "es" if what.endswith("s") else "s")


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:,.1f} s" if seconds < 10 else f"{seconds:,.0f} s"
    if seconds < 600:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 60:,.0f} minutes" if seconds < 7_200 else f"{seconds / 3_600:,.1f} hours"
