"""The search on servers that are made up, so that their capacity is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from harness.errors import InputError
from harness.slo.judgement import Count
from harness.slo.objective import Limit, parse_slo
from harness.slo.search import LONGER, Plan, find_rate

(P99,) = parse_slo("ttft_p99<500ms")
(P90,) = parse_slo("ttft_p90<500ms")
PLAN = Plan(lowest=0.5, highest=64, precision=0.05, confidence=0.95, length_s=30, looks=3)


def server(capacity: float, steepness: float, limit: Limit, seed: int) -> Callable[[float, float], Sequence[Count]]:
    """Exactly the allowed share is beyond the limit at its capacity; it grows with rate ** steepness."""
    random = np.random.default_rng(seed)

    def look(rate: float, length_s: float) -> list[Count]:
        requests = int(random.poisson(rate * length_s))
        share = min(1.0, limit.allowed * (rate / capacity) ** steepness)
        return [Count(limit, int(random.binomial(requests, share)), requests)]

    return look


@pytest.mark.parametrize(("limit", "confidence"), [(P99, 0.95), (P90, 0.8)])
def test_the_capacity_lies_where_the_answer_says_at_least_as_often_as_it_says(limit: Limit, confidence: float) -> None:
    plan = Plan(0.5, 64, 0.05, confidence, 30, 3)
    wrong = 0
    for seed in range(1000):
        capacity = float(np.random.default_rng(seed).uniform(1.0, 60.0))
        answer = find_rate(plan, server(capacity, 8, limit, seed + 10**6))
        assert len(answer.probes) <= plan.most_probes
        wrong += (answer.met or 0) > capacity or (answer.not_met or 64) < capacity
    assert wrong / 1000 <= 1 - confidence


def test_a_steep_server_is_found_within_the_precision() -> None:
    """Past its capacity nearly every request is late, so nothing stays undecided but what is very near to it."""
    near = 0
    for seed in range(500):
        capacity = float(np.random.default_rng(seed).uniform(5.0, 60.0))
        answer = find_rate(PLAN, server(capacity, 60, P99, seed + 10**6))
        assert answer.met is not None
        near += capacity / (1 + 2 * PLAN.precision) <= answer.met <= capacity
    assert near / 500 >= PLAN.confidence


def test_each_rate_that_is_tried_is_between_what_was_met_and_what_was_not() -> None:
    answer = find_rate(PLAN, server(10.0, 200, P99, 1))
    rates = [probe.rate for probe in answer.probes]
    assert rates[:4] == [0.5, 2.0, 8.0, 32.0]
    assert rates[4:6] == [16.0, 11.31]  # the geometric means of 8 and 32, of 8 and 16
    assert answer.met is not None
    assert answer.not_met is not None
    assert answer.met < 10 < answer.not_met


def test_at_the_ends_of_the_range_the_search_says_so() -> None:
    everything = find_rate(PLAN, server(1e9, 8, P99, 1))
    assert (everything.met, everything.not_met) == (64, None)
    assert [probe.rate for probe in everything.probes] == [0.5, 2.0, 8.0, 32.0, 64]
    nothing = find_rate(PLAN, server(0.01, 8, P99, 1))
    assert (nothing.met, nothing.not_met, len(nothing.probes)) == (None, 0.5, 1)


def test_a_rate_that_no_look_decides_is_not_taken_for_met() -> None:
    asked = []

    def at_the_limit(rate: float, length_s: float) -> list[Count]:
        requests = round(rate * length_s)
        asked.append(length_s)
        return [Count(P99, -(-requests // 100), requests)]

    answer = find_rate(PLAN, at_the_limit)
    assert (answer.met, answer.not_met, answer.undecided) == (None, None, [0.5])
    assert asked == [30, 30 * LONGER[-1], 30 * LONGER[-1] ** 2]
    assert (answer.probes[0].looks, answer.probes[0].length_s) == (3, asked[-1])


def test_too_few_requests_at_a_low_rate_do_not_end_the_search() -> None:
    """At 0.5 sessions a second three looks bring 240 requests, and a p99 takes over 600; at 8 they are soon there."""
    answer = find_rate(PLAN, server(10.0, 200, P99, 1))
    assert [(probe.verdict, probe.looks) for probe in answer.probes[:2]] == [("undecided", 1)] * 2
    assert answer.met is not None
    assert answer.met > 9


def test_a_lower_rate_is_shown_where_the_one_that_looked_well_was_not() -> None:
    def look(rate: float, length_s: float) -> list[Count]:
        requests = round(rate * length_s)
        late = rate > 2 or (rate > 1 and length_s > 30)  # at 2 it shows in longer looks only
        return [Count(P90, requests // 2 if late else 0, requests)]

    answer = find_rate(PLAN, look)
    assert answer.met is not None
    assert answer.met <= 1
    assert len(answer.probes) <= PLAN.most_probes


def test_the_chance_to_be_wrong_is_shared_out_over_all_looks() -> None:
    # Up: 0.5, 2, 8, 32, 64. Then between two that differ by a factor of 4: log 4 / log 1.05 = 28.4 steps, 5 halvings.
    assert PLAN.most_probes == 5 + 2 * 5
    assert PLAN.error == pytest.approx(0.05 / 45)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lowest": 0}, "no range"),
        ({"lowest": 64}, "no range"),
        ({"precision": 0}, "precision is 0"),
        ({"precision": 5}, "precision is 5"),
        ({"confidence": 1.0}, "confidence is 1"),
        ({"length_s": 0.0}, "at least 1 s"),
    ],
)
def test_a_search_that_could_find_nothing_is_refused(changes: dict[str, float], words: str) -> None:
    fields = {name: getattr(PLAN, name) for name in PLAN.__slots__}
    with pytest.raises(InputError, match=words):
        Plan(**{**fields, **changes}).check()
