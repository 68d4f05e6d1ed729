"""The verdict's second sentence: what hits bought, and when that cannot be told."""

from __future__ import annotations

import pytest

from harness.report.prefill import Fit, Prefill
from harness.report.tails import Tail
from harness.report.verdict import LEAST_OF_EACH, bought

NO_FIT = Prefill((), 0, None, "too few")


def tail(which: str, n: int, p50_ms: float) -> Tail:
    return Tail(which, n, p50_ms, p50_ms, p50_ms, p50_ms, ())


def test_it_compares_medians_where_there_are_enough_of_both() -> None:
    sentence = bought([tail("hit", 180, 21.6), tail("miss", LEAST_OF_EACH, 169.0)], NO_FIT)
    assert sentence == (
        "A miss waits 7.8 times as long as a hit for its first token: median TTFT 169 ms (n = 10) against 21.6 ms "
        "(n = 180)."
    )


@pytest.mark.parametrize(
    ("hits", "misses", "found"),
    [
        (180, 1, "180 hits and 1 miss"),
        (180, LEAST_OF_EACH - 1, "180 hits and 9 misses"),
        (3, 1, "3 hits and 1 miss"),
    ],
)
def test_a_few_requests_are_no_headline(hits: int, misses: int, found: str) -> None:
    sentence = bought([tail("hit", hits, 21.6), tail("miss", misses, 169.0)], NO_FIT)
    assert sentence == f"What it bought in TTFT cannot be seen by comparison: there are only {found}."


def test_each_time_has_one_unit() -> None:
    fit = Fit(995_000.0, 900_000.0, 999_000.0, 1.0, 5.0, 4.0, 6.0)
    sentence = bought([tail("hit", 20, 200_000.0), tail("miss", 20, 995_000.0)], Prefill((), 40, fit, None))
    assert "median TTFT 995 s (n = 20) against 200 s (n = 20)" in sentence
    assert "a thousand uncached tokens cost 995 s, so hits saved about 5.0 s of waiting" in sentence
