"""The verdict of evict, and that its sentence says what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.checks.evict_finding import EXIT_CODES, found, no_sight
from harness.checks.evict_measure import Lengths, Measured, Told
from harness.checks.evict_search import Room
from harness.checks.sight import NoSight

TOKENS = Measured(
    Lengths(200, 1000, 1),
    "usage",
    Room(20, None, False),
    Room(9000, 9100, True, loses_its_end=True),
    "least-recently-used",
    (1.0, 0.25),
    requests=90,
    tokens=70_000,
)
"""Room for 10,000 tokens."""
SLOTS = Measured(
    Lengths(200, 1016, 1),
    "usage",
    Room(1, 2, True),
    Room(1000, 1030, True),
    "least-recently-used",
    (1.0, 0.0),
    requests=40,
    tokens=20_000,
)
"""Two prompts of whatever length."""
TWO_SLOTS = Told(context_tokens=1024, granularity_tokens=1, slots=2)


@pytest.mark.parametrize(
    ("measured", "told", "verdict"),
    [
        (TOKENS, Told(capacity_tokens=10_000), "as-claimed"),
        (TOKENS, Told(capacity_tokens=10_400), "as-claimed"),
        (TOKENS, Told(capacity_tokens=10_700), "less"),
        (TOKENS, Told(capacity_tokens=9_000), "more"),
        (TOKENS, Told(), "found"),
        (replace(TOKENS, long=Room(9000, None, False)), Told(capacity_tokens=10_000), "not-found"),
        (replace(TOKENS, long=Room(9000, 20_000, False)), Told(), "not-found"),
        (SLOTS, TWO_SLOTS, "as-claimed"),
        (SLOTS, replace(TWO_SLOTS, slots=3), "less"),
        (SLOTS, replace(TWO_SLOTS, slots=1, capacity_tokens=2048), "more"),
        # Prompts too short to fill the slots are no evidence about tokens.
        (SLOTS, replace(TWO_SLOTS, context_tokens=8192, capacity_tokens=16_384), "as-claimed"),
    ],
)
def test_the_verdict_is_on_what_the_engine_claims(measured: Measured, told: Told, verdict: str) -> None:
    finding = found(measured, told, seconds=120)
    assert finding.verdict == verdict
    assert finding.exit_code == EXIT_CODES[verdict]  # type: ignore[index]


def test_tokens_in_words() -> None:
    assert found(TOKENS, Told(capacity_tokens=10_000), 120).sentence == (
        "The cache holds 10,000 tokens: a prompt of 1,000 tokens was held whole after 9,000 tokens of others, and not "
        "after 9,100. Its end went before its beginning. The engine claims 10,000 tokens; 100.0% of that was found. Of "
        "two prompts the one that was asked for again stayed, the other went: what was used longest ago goes first. It "
        "is not first in, first out."
    )


def test_slots_in_words() -> None:
    sentence = found(SLOTS, TWO_SLOTS, 120).sentence
    assert "holds 2 prompts, of 200 tokens as of 1,016: it counts prompts, not tokens" in sentence
    assert "With the long ones that is 2,016 tokens" in sentence
    assert "The server has 2 slots of 1,024 tokens each, 2,048 together." in sentence
    assert "host memory" not in sentence


def test_host_memory_counts_as_held_and_is_named() -> None:
    measured = replace(SLOTS, short=Room(7, 8, True))
    finding = found(measured, TWO_SLOTS, 120)
    assert finding.verdict == "more"
    assert "limited in prompts and in tokens: it holds 8 prompts of 200 tokens" in finding.sentence
    assert "6 prompts more than it has slots came back from host memory (--cache-ram)" in finding.sentence


def test_a_shared_buffer_is_named() -> None:
    measured = replace(SLOTS, short=Room(3, 4, True), long=Room(0, 200, True))
    sentence = found(measured, Told(context_tokens=1024, slots=4), 120).sentence
    assert "a prompt of 1,016 tokens was lost to the next one" in sentence
    assert "4 slots, which share one KV buffer of 1,024 tokens (as with --kv-unified)" in sentence


def test_what_was_not_found_says_its_bounds() -> None:
    finding = found(replace(TOKENS, long=Room(9000, 20_000, False), order=None), Told(), 7)
    assert "not found within 7 s: 10,000 tokens at least, and fewer than 21,000; give more --seconds" in (
        finding.sentence
    )
    assert "Which prompt goes first was not found." in finding.sentence
    assert finding.numbers["capacity_tokens"] is None
    assert finding.numbers["held_tokens"] == 10_000


def test_the_clock_is_named_where_it_is_all_there_is() -> None:
    assert "by the clock alone" in found(replace(TOKENS, source="clock"), Told(), 120).sentence
    assert "by the engine's counter" in found(replace(TOKENS, source="counter"), Told(), 120).sentence


@pytest.mark.parametrize(
    ("is_counted", "verdict", "code", "words"),
    [(True, "no-hits", 1, "start it with caching"), (False, "unseen", 2, "start it with counts")],
)
def test_a_cache_that_shows_no_hit(is_counted: bool, verdict: str, code: int, words: str) -> None:
    advice: Any = {"caching": "start it with caching", "cached_tokens": "start it with counts"}
    finding = no_sight(NoSight(is_counted), Lengths(200, 1000, 1), advice)
    assert (finding.verdict, finding.exit_code) == (verdict, code)
    assert words in finding.sentence


def test_numbers_for_scripts() -> None:
    numbers = found(SLOTS, TWO_SLOTS, 120).numbers
    assert numbers["capacity_tokens"] == numbers["held_tokens"] == 2016
    assert numbers["lost_tokens"] == 2046
    assert (numbers["prompts"], numbers["slots"], numbers["slot_tokens"]) == (2, 2, 1024)
    assert (numbers["limited_in"], numbers["order"]) == ("prompts", "least-recently-used")
    assert numbers["claimed_tokens"] is None
