"""The sentences of a proof: each tells what was seen, and what to do where something can be done."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

from harness.checks.prove_evidence import Clock, Counted, Counts, Timed
from harness.checks.prove_statistics import median_interval
from harness.checks.prove_verdict import Evidence, judge
from harness.checks.prove_wording import Facts, sentence

HIT = Counts("hit", 15, 15, 30_080, 30_190, ())
NONE = Counts("none", 0, 15, 0, 30_190, ())
SOME = Counts("some", 3, 15, 6_000, 30_190, ())
UNKNOWN = Counts("unknown", 0, 0, 0, 0, ())
COUNTS: dict[Counted, Counts] = {"hit": HIT, "none": NONE, "some": SOME, "unknown": UNKNOWN}
RATIO = median_interval([0.03, 0.04, 0.05, 0.06, 0.07])
ADVICE = {"cached_tokens": "start it with --report", "caching": "start it with --cache"}


def facts(usage: Counted, counter: Counted, timed: Timed, advice: bool = True, **more: object) -> Facts:
    evidence = replace(Evidence(usage, counter, timed, can_report=advice), **more)  # type: ignore[arg-type]
    clock = Clock(timed, RATIO, RATIO, 1 / 32, cost_ms=90.0, noise_ms=2.5)
    known = ADVICE if advice else {}
    return Facts(evidence, COUNTS[usage], COUNTS[counter], clock, 2000, 16, known)  # type: ignore[arg-type]


def said(made: Facts) -> str:
    return sentence(judge(made.evidence), made)


def test_every_combination_has_a_sentence_or_more() -> None:
    for usage, counter, timed, advice in product(get_args(Counted), get_args(Counted), get_args(Timed), (True, False)):
        words = said(facts(usage, counter, timed, advice))
        assert words[0].isupper()
        assert words.endswith(".")
        assert ".." not in words.replace("...", "")


def test_a_cache_that_works() -> None:
    assert said(facts("hit", "hit", "faster")) == (
        "The cache works: 15 of 15 requests with a prefix that was sent before hit it (30,080 tokens, 30,190 expected) "
        "by the answers and by the counter, and the first token took 0.05 (0.03 to 0.07 with 94% confidence, 5 "
        "prefixes) times as long as cold, 0.05 times that of the control."
    )


def test_reporting_off_names_the_flag() -> None:
    assert said(facts("unknown", "hit", "faster")).endswith("Start it with --report.")
    assert said(facts("unknown", "unknown", "faster")).endswith("Start it with --report.")


def test_off_says_how_to_turn_it_on() -> None:
    assert said(facts("none", "none", "not-faster")).endswith("Start it with --cache.")
    assert said(facts("none", "none", "not-faster", advice=False)).endswith("Start the server with prefix caching on.")


def test_the_clock_alone_says_how_sure_it_is() -> None:
    words = said(facts("unknown", "unknown", "faster", advice=False))
    assert "by chance so many prefixes would be faster once in 32 times" in words
    assert "94% confidence" in words


def test_sources_that_differ_are_told_apart() -> None:
    words = said(facts("none", "hit", "not-faster"))
    assert "0 of 15 requests" in words
    assert "by the answers and 15 of 15 requests" in words


def test_too_short_says_what_the_prefix_costs() -> None:
    assert "without a cache it costs 90.0 ms, and times vary by 2.5 ms" in said(facts("hit", "hit", "too-short"))
    assert "no whole block of 16" in said(facts("none", "none", "not-faster", fits_block=False))


def test_replicas_are_named() -> None:
    words = said(facts("some", "some", "faster", replicas=4))
    assert "another of the 4 replicas" in words
    assert words.endswith("Look at each replica by its own URL.")
