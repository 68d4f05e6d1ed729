"""What persist makes of counts and times."""

from __future__ import annotations

from typing import Any

import pytest

from harness.checks.persist_evidence import EXIT_CODES, Asked, Evidence, Role, judge

COUNTS: dict[Role, int | None] = {"cold": 0, "warm": 1023, "erased": 0, "restored": 1023}
TIMES: dict[Role, float | None] = {"cold": 90.0, "warm": 10.0, "erased": 92.0, "restored": 11.0}
EQUAL: dict[Role, float | None] = dict.fromkeys(COUNTS, 10.0)


def shown(counts: dict[Any, int | None], times: dict[Any, float | None]) -> Evidence:
    """Three rounds alike."""
    asked = [Asked(role, count, times[role]) for role, count in counts.items()]
    return Evidence(tuple(asked * 3), prompt_tokens=1024, head_tokens=10)


@pytest.mark.parametrize(
    ("change", "times", "verdict"),
    [
        ({}, TIMES, "works"),
        ({}, EQUAL, "works"),
        ({"restored": 1022}, TIMES, "works"),
        ({"restored": 1024}, TIMES, "works"),
        ({"restored": 1021}, TIMES, "partial"),
        ({"restored": 512}, TIMES, "partial"),
        ({"restored": 10}, TIMES, "not-restored"),
        ({"restored": 0}, TIMES, "not-restored"),
        ({"warm": 0, "restored": 0}, EQUAL, "no-hits"),
        ({"warm": 200, "restored": 200}, EQUAL, "no-hits"),
        ({"erased": 1023}, TIMES, "not-erased"),
        ({"erased": 11}, TIMES, "not-erased"),
        ({"erased": 10}, TIMES, "works"),
        ({}, {**TIMES, "restored": 89.0}, "timing-differs"),
    ],
)
def test_by_tokens(change: dict[Role, int], times: dict[Role, float | None], verdict: str) -> None:
    assert judge(shown({**COUNTS, **change}, times)) == verdict


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        (TIMES, "works"),
        ({**TIMES, "restored": 88.0}, "not-restored"),
        (EQUAL, "unseen"),
        ({**TIMES, "warm": 70.0}, "unseen"),  # 90 / 70 is less than 1.5
        ({**TIMES, "restored": None}, "unseen"),
    ],
)
def test_by_the_clock_where_nobody_counts(times: dict[Role, float | None], verdict: str) -> None:
    assert judge(shown({**COUNTS, "warm": None}, times)) == verdict


def test_restored_requests_that_differ_are_no_sign_by_the_clock() -> None:
    quick, late = shown(dict.fromkeys(COUNTS), TIMES), shown(dict.fromkeys(COUNTS), {**TIMES, "restored": 90.0})
    mixed = Evidence(quick.asked[:8] + late.asked[8:], 1024, 10)
    assert judge(mixed) == "unseen"


def test_without_a_cold_request_the_emptied_slot_stands_for_it() -> None:
    """As where another process saved the slot."""
    counts = {role: count for role, count in COUNTS.items() if role != "cold"}
    assert judge(shown(counts, TIMES)) == "works"
    assert judge(shown({**counts, "restored": 0}, TIMES)) == "not-restored"


def test_only_what_was_shown_exits_with_0() -> None:
    assert [verdict for verdict, code in EXIT_CODES.items() if code == 0] == ["works"]
