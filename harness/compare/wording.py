"""A comparison in words, and the cells of its tables: the same for the screen and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent
from harness.analysis.tables import Footnotes
from harness.compare.compare import Against, Comparison
from harness.compare.effect import Effect
from harness.compare.measures import FAILED


def headings(side: str) -> list[str]:
    """Of the table of one side; 80 columns hold it."""
    return ["", "n A", f"n {side}", "A", side, "ratio", "95 % interval", "found", "could\nfind"]


TEXTS = (0, 7)
"""Columns of text; the others are numbers."""
_FOUND = {
    "higher": "higher",
    "lower": "lower",
    "perhaps higher": "higher?",
    "perhaps lower": "lower?",
    "none": "no",
    "unknown": UNKNOWN,
}
_NAMES = {
    "ttft": "TTFT",
    "ttft_cold": "TTFT cold",
    "ttft_warm": "TTFT warm",
    "ttft_hit": "TTFT hits",
    "ttft_miss": "TTFT misses",
    "tpot": "TPOT",
    "e2e": "E2E",
    "hit_rate_diff": "hit rate",
    "hit_rate_warm_diff": "hit rate warm",
    "failures_diff": "failed",
}
_MOST_NAMED = 4
"""Lines that the headline names."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table of one side."""

    cells: tuple[str, ...]
    """As `headings`."""
    is_found: bool


def lines(against: Against, notes: Footnotes) -> Iterator[Line]:
    """Of all effects of which at least one side is known; `notes` take why one is not."""
    for effect in against.effects:
        if any(number is not None for number in (effect.reference, effect.other, effect.effect)):
            yield Line(_cells(effect, notes), effect.verdict in ("higher", "lower"))


def _cells(effect: Effect, notes: Footnotes) -> tuple[str, ...]:
    side = percent if effect.kind == "difference" else milliseconds
    interval = notes.unknown(effect.reason)
    if effect.low is not None and effect.high is not None:
        interval = f"{_number(effect, effect.low)} to {_number(effect, effect.high)}"
    return (
        name_of(effect.name),
        *map(_requests, effect.requests),
        side(effect.reference),
        side(effect.other),
        UNKNOWN if effect.effect is None else _number(effect, effect.effect),
        interval,
        _FOUND[effect.verdict],
        _reach(effect),
    )


def _requests(number: int) -> str:
    """Six characters at most."""
    if number < 100_000:
        return count(number)
    return f"{number / 1e3:,.0f} k" if number < 1_000_000 else f"{number / 1e6:,.1f} M"


def name_of(name: str) -> str:
    """Of ttft_cold_p50_ratio: TTFT cold p50."""
    plain = name.removesuffix(FAILED)
    if plain in _NAMES:
        return _NAMES[plain]
    time, share, _ = plain.rsplit("_", 2)
    return FAILED if plain != name else f"{_NAMES[time]} {share}"


def _number(effect: Effect, value: float) -> str:
    """A ratio, or a difference of shares in percentage points."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.3f}" if effect.kind != "difference" else f"{100 * value:+.2f}"


def _reach(effect: Effect) -> str:
    if effect.detectable is None:
        return UNKNOWN
    number = 100 * effect.detectable
    text = f"{number:.1f}" if number < 10 else f"{number:,.0f}"
    return f"{text} pp" if effect.kind == "difference" else f"{text} %"


def headline(against: Against) -> str:
    """What was found, in a sentence."""
    found = [
        effect for effect in against.effects if effect.verdict in ("higher", "lower") and FAILED not in effect.name
    ]
    if found:
        told = "; ".join(
            f"{name_of(effect.name)} {effect.verdict}, {_change(effect)}" for effect in found[:_MOST_NAMED]
        )
        more = f"; and {len(found) - _MOST_NAMED} lines more" if len(found) > _MOST_NAMED else ""
        return f"{against.side} against A: {told}{more}."
    known = [effect for effect in against.effects if effect.verdict == "none" and effect.detectable is not None]
    if not known:
        return f"{against.side} against A: it cannot be told, there is too little to compare."
    perhaps = [name_of(effect.name) for effect in against.effects if effect.verdict.startswith("perhaps")]
    maybe = f" (perhaps of {', '.join(perhaps)}: of so many lines one may say so by chance)" if perhaps else ""
    first = known[0]
    return (
        f"{against.side} against A: no difference found{maybe}. One of {_reach(first)} in {name_of(first.name)} would "
        "have been found by 4 of 5 such comparisons."
    )


def _change(effect: Effect) -> str:
    if effect.effect is None or effect.low is None or effect.high is None:
        return UNKNOWN
    numbers = (_number(effect, value) for value in (effect.effect, effect.low, effect.high))
    return ("{} pp ({} to {})" if effect.kind == "difference" else "{} times ({} to {})").format(*numbers)


def facts(comparison: Comparison) -> Iterator[str]:
    """What was compared."""
    for name, label in comparison.sides:
        yield f"{name} = {label}"
    yield f"Workload: {comparison.workload}."
    what = "the requests that all of them measured" if comparison.is_paired else "all requests, each side by itself"
    numbers = ", ".join(
        f"{count(compared)} of {count(measured)} in {name}"
        for (name, _), (compared, measured) in zip(comparison.sides, comparison.requests, strict=True)
    )
    yield f"Compared: {what}: {numbers}; {count(comparison.sessions)} sessions of A."


NOTES = (
    "ratio: to A; of hit rate and failed it is the difference from A in percentage points (pp). Times in ms, of "
    "requests that succeeded, while the harness kept up; +failed: with each failed request as infinitely slow; paired: "
    "the median of the ratios of each request to itself on A.",
    "95 % interval: of each line taken by itself, by 2,000 draws of as many sessions, with replacement; wider where "
    "requests of one time were slow together, and none where a few moments of a run made all of it.",
    "found: higher and lower hold with 95 % confidence for all lines together; with ? the interval says so, but of so "
    "many lines one may by chance. could find: the smallest difference that 4 of 5 such comparisons would find.",
    "Sessions tell how requests vary within a run, not how runs do: repeat runs and name them together (RUN,RUN).",
)


def identity_rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """What differs, by side; what is not known of all sides says so."""
    for difference in comparison.differences:
        what = f"{difference.what} (not known of all)" if difference.unknown else difference.what
        yield (what, *difference.values)


def names(comparison: Comparison) -> Sequence[str]:
    return [name for name, _ in comparison.sides]
