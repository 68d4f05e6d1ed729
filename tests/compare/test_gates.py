"""The grammar of gates, and what they decide by."""

from __future__ import annotations

import math

import pytest

from harness.compare.effect import Effect, Kind
from harness.compare.gates import Gate, fails, judge, parse_gates
from harness.errors import InputError


def test_gates_are_read_with_spaces_percent_and_commas() -> None:
    assert parse_gates(["ttft_p99_ratio > 1.1, hit_rate_diff<-2%", "ttft_paired_ratio>1"]) == (
        Gate("ttft_p99_ratio>1.1", "ttft_p99_ratio", True, 1.1),
        Gate("hit_rate_diff<-2%", "hit_rate_diff", False, -0.02),
        Gate("ttft_paired_ratio>1", "ttft_paired_ratio", True, 1.0),
    )
    assert parse_gates(["failures_diff>.5%"]) == (Gate("failures_diff>.5%", "failures_diff", True, 0.005),)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "--fail-if is '': expected NAME>NUMBER or NAME<NUMBER, such as ttft_p99_ratio>1.1"),
        ("ttft_p99_ratio>=1.1", "expected NAME>NUMBER"),
        ("ttft_p99_ratio>1.1,", "--fail-if is '': expected"),
        ("ttft_p95_ratio>1.1", "there is no ttft_p95_ratio; there are ttft, ttft_cold, "),
        ("ttft_p99_ratio>10%", "a ratio takes no %: 1 is no change, and 1.1 is 10 % more"),
        ("hit_rate_diff<-2", "shares differ by less than 1; percentage points have a %, as in hit_rate_diff<-2%"),
        ("ttft_p99_ratio>-5%", "a ratio is above 0, and 1 means that nothing changed"),
    ],
)
def test_a_gate_that_cannot_be_read_is_the_users_mistake(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_gates([text])
    assert sentence in str(caught.value)


def effect(
    low: float | None, high: float | None, name: str = "ttft_p99_ratio", kind: Kind = "ratio", reason: str = ""
) -> Effect:
    point = None if low is None or high is None else (low + high) / 2
    return Effect(name, kind, (9, 9), 1.0, point, point, low, high, "none", None, reason)


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (1.11, 1.3, "failed"),
        (0.9, 1.1, "passed"),
        (1.05, 1.3, "undecided"),  # the point is beyond the limit, but it may be chance
        (math.inf, math.inf, "failed"),
        (1.1, 1.2, "undecided"),
    ],
)
def test_a_gate_fails_only_if_the_whole_interval_is_beyond_its_limit(low: float, high: float, state: str) -> None:
    (gate,) = parse_gates(["ttft_p99_ratio>1.1"])
    judged = judge(gate, "B", [effect(low, high)])

    assert (judged.gate, judged.side, judged.state) == ("ttft_p99_ratio>1.1", "B", state)


def test_a_gate_below_looks_the_other_way() -> None:
    (gate,) = parse_gates(["hit_rate_diff<-2%"])
    states = [
        judge(gate, "B", [effect(low, high, "hit_rate_diff", "difference")]).state
        for low, high in ((-0.05, -0.03), (-0.03, 0.0), (-0.02, 0.01))
    ]
    assert states == ["failed", "undecided", "passed"]
    sentence = judge(gate, "B", [effect(-0.05, -0.03, "hit_rate_diff", "difference")]).sentence
    assert sentence == "hit_rate_diff<-2%: FAILED. hit_rate_diff is -4.00 pp (-5.00 pp to -3.00 pp)."


def test_no_gate_is_passed_by_failing_requests() -> None:
    (gate,) = parse_gates(["ttft_p99_ratio>1.1"])
    fast, with_failures = effect(0.9, 1.0), effect(1.2, math.inf, "ttft_p99_ratio+failed")

    assert judge(gate, "B", [fast]).state == "passed"
    assert judge(gate, "B", [fast, with_failures]).state == "failed"


def test_what_is_not_known_fails_and_what_is_not_decided_only_if_strict() -> None:
    gate, same = parse_gates(["ttft_p99_ratio>1.1", "ttft_paired_ratio>1.1"])
    unknown = judge(gate, "B", [effect(None, None, reason="19 sessions are too few")])
    undecided, passed = judge(gate, "B", [effect(1.0, 1.2)]), judge(gate, "B", [effect(0.9, 1.0)])
    not_there = judge(same, "B", [effect(0.9, 1.0)])

    assert unknown.sentence == "ttft_p99_ratio>1.1: UNKNOWN. ttft_p99_ratio is not known: 19 sessions are too few."
    assert not_there.sentence == "ttft_paired_ratio>1.1: UNKNOWN. The sides did not send the same requests."
    assert [fails([one], strict=False) for one in (unknown, not_there, undecided, passed)] == [True, True, False, False]
    assert [fails([one], strict=True) for one in (undecided, passed)] == [True, False]
    assert not fails([], strict=True)
