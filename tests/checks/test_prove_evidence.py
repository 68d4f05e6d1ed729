"""What counts and times say, on measures made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from harness.checks.prove_evidence import Measure, Timed, Unrelated, by_counter, by_usage, clock, counts
from harness.checks.prove_plan import Name

FAST = Unrelated(full_ms=(100.0, 101.0, 99.0), short_ms=(10.0, 10.5, 9.5))
"""The prefix costs 90 of 100 ms."""


def measure(prefix: int, name: Name, ttft_ms: float = 100.0, cached: int | None = 0) -> Measure:
    shared = {"cold": 0, "first": 0, "warm": 1000, "repeat": 1030, "tail": 900, "middle": 500}[name]
    return Measure(prefix, name, 1030, shared, shared + 5, cached, cached, ttft_ms)


def prefixes(
    colds: Sequence[float], warms: Sequence[float], controls: Sequence[float], cached: int | None = 1000
) -> list[Measure]:
    """A prefix for each of the times."""
    found = []
    for number, (cold, warm, control) in enumerate(zip(colds, warms, controls, strict=True)):
        found += [measure(number, "cold", cold, None if cached is None else 0)]
        found += [measure(number, "warm", warm, cached), measure(number, "repeat", warm, cached)]
        found += [measure(number, "first", control, None if cached is None else 0)]
    return found


@pytest.mark.parametrize(
    ("cached", "state", "hits"),
    [(1000, "hit", 10), (992, "hit", 10), (520, "hit", 10), (400, "none", 0), (0, "none", 0), (None, "unknown", 0)],
)
def test_half_of_what_the_rules_say_is_a_hit_and_no_count_is_not_none(
    cached: int | None, state: str, hits: int
) -> None:
    found = counts(prefixes([100.0] * 5, [10.0] * 5, [100.0] * 5, cached), by_usage, 1, exact=True)
    assert (found.state, found.hits, found.contaminated) == (state, hits, ())
    assert found.expected_tokens == (0 if cached is None else 5 * (1000 + 1029))


def test_each_source_has_its_own_counts() -> None:
    measures = [replace(one, counter_cached_tokens=None) for one in prefixes([1.0] * 5, [1.0] * 5, [1.0] * 5)]
    assert counts(measures, by_usage, 1, exact=True).state == "hit"
    assert counts(measures, by_counter, 1, exact=True).state == "unknown"


def test_a_few_hits_are_neither_hits_nor_none() -> None:
    measures = prefixes([1.0] * 5, [1.0] * 5, [1.0] * 5, cached=0)
    measures[1] = replace(measures[1], usage_cached_tokens=1000)
    assert counts(measures, by_usage, 1, exact=True).state == "some"


def test_few_known_counts_are_no_counts() -> None:
    measures = prefixes([1.0] * 5, [1.0] * 5, [1.0] * 5, cached=None)
    measures[1] = replace(measures[1], usage_cached_tokens=1000)
    assert counts(measures, by_usage, 1, exact=True).state == "unknown"


@pytest.mark.parametrize("name", ["cold", "first"])
def test_a_hit_of_what_nobody_sent_is_contamination(name: Name) -> None:
    """5 tokens are the template's head; where lengths are guessed, a tenth of the prompt is allowed."""
    measures = prefixes([1.0] * 5, [1.0] * 5, [1.0] * 5)
    for cached, exact, expected in ((5, True, ()), (6, True, (name,)), (103, False, ()), (104, False, (name,))):
        hit = [replace(one, usage_cached_tokens=cached) if one.name == name else one for one in measures]
        assert counts(hit, by_usage, 1, exact).contaminated == expected


def test_a_prefix_shorter_than_a_block_cannot_be_hit() -> None:
    found = counts(prefixes([1.0] * 5, [1.0] * 5, [1.0] * 5, cached=0), by_usage, 2048, exact=True)
    assert (found.state, found.expected_tokens) == ("none", 0)


STEADY = [100.0, 101.0, 99.0, 100.5, 99.5]


@pytest.mark.parametrize(
    ("colds", "warms", "controls", "unrelated", "state"),
    [
        (STEADY, [10.0, 11.0, 9.0, 12.0, 10.0], STEADY, FAST, "faster"),
        (STEADY, [99.0, 102.0, 98.0, 101.0, 100.0], STEADY, FAST, "not-faster"),
        # Always a little sooner, but by less than a fifth of what a hit saves.
        (STEADY, [95.0] * 5, STEADY, FAST, "not-faster"),
        # Slow at each prefix's first request, whatever it is.
        (STEADY, [50.0] * 5, [50.0, 51.0, 49.0, 50.0, 50.0], FAST, "control-fast"),
        # The prefix costs 3 ms where times vary by 4.
        ([14.0, 10.0, 12.0, 9.0, 13.0], [10.0] * 5, [10.0, 13.0, 9.0, 12.0, 14.0],
         Unrelated((12.0, 13.0, 13.0), (10.0, 9.0, 10.5)), "too-short"),
        # It costs 90 of 100 ms, where times vary by 178: that is no fault of the prefix.
        ([100.0, 160.0, 40.0, 220.0, 30.0], [90.0, 20.0, 50.0, 100.0, 35.0], [100.0, 160.0, 40.0, 100.0, 40.0],
         FAST, "unsure"),
        # It costs 5 of 105 ms: whatever is saved does not matter.
        ([105.0] * 5, [100.0] * 5, [105.0] * 5, Unrelated((105.0,) * 3, (100.0,) * 3), "too-short"),
        # One prefix of five went the other way.
        (STEADY, [10.0, 11.0, 120.0, 12.0, 10.0], STEADY, FAST, "unsure"),
        (STEADY[:4], [10.0] * 4, STEADY[:4], FAST, "unsure"),
        ([], [], [], FAST, "unsure"),
        # Without unrelated requests to compare with, the pairs alone tell.
        (STEADY, [10.0] * 5, STEADY, Unrelated((), ()), "faster"),
    ],
)  # fmt: skip
def test_what_the_clock_says(
    colds: list[float], warms: list[float], controls: list[float], unrelated: Unrelated, state: Timed
) -> None:
    assert clock(prefixes(colds, warms, controls), unrelated).state == state


def test_ratios_are_of_pairs_and_the_chance_is_that_of_a_sign_test() -> None:
    found = clock(prefixes([100.0, 200.0, 400.0, 100.0, 100.0], [10.0, 20.0, 20.0, 30.0, 40.0], [80.0] * 5), FAST)
    assert found.to_cold is not None
    assert (found.to_cold.median, found.to_cold.low, found.to_cold.high) == (0.1, 0.05, 0.4)
    assert found.to_control is not None
    assert found.to_control.median == 20 / 80
    assert found.chance == 1 / 32
    assert found.cost_ms == 90.0


def test_a_prefix_without_its_control_is_no_pair() -> None:
    measures = [one for one in prefixes(STEADY, [10.0] * 5, STEADY) if (one.prefix, one.name) != (2, "first")]
    found = clock(measures, FAST)
    assert found.to_cold is not None
    assert (found.to_cold.n, found.state) == (4, "unsure")
