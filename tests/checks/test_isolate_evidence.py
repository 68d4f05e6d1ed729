"""Only a pair is a verdict: the same tenant sees the prefix, another one does not."""

from __future__ import annotations

from itertools import product

import pytest

from harness.checks.isolate_evidence import APART, TOGETHER, Asked, Evidence, Role, evidence, judge

ROLES: tuple[Role, ...] = ("same", "other", "none", "none-again", "after-none")


@pytest.mark.parametrize("saw", list(product([True, False, None], repeat=5)))
def test_every_combination_of_what_was_seen(saw: tuple[bool | None, ...]) -> None:
    shown = Evidence(dict(zip(ROLES, saw, strict=True)), {})
    verdict, roles = judge(shown)
    seen = dict(zip(ROLES, saw, strict=True))
    if saw == (True, False, False, True, False):
        assert (verdict, roles) == ("isolated", APART)
    elif seen["same"] and True in (seen[role] for role in APART):
        assert verdict == "shared"
        assert roles == tuple(role for role in APART if seen[role])
    else:
        assert verdict == "unclear"
        assert roles == tuple(role for role in TOGETHER if not seen[role]) + tuple(
            role for role in APART if seen[role] is None
        )


def test_where_tokens_are_not_told_the_clock_decides() -> None:
    by_clock: dict[Role, bool | None] = {
        "same": True,
        "other": False,
        "none": False,
        "none-again": True,
        "after-none": False,
    }
    assert judge(Evidence({}, by_clock))[0] == "isolated"
    assert judge(Evidence({}, {**by_clock, "none": True})) == ("shared", ("none",))
    assert Evidence({}, by_clock).source == "clock"
    assert Evidence({}, {}).source is None


def test_a_first_token_as_soon_as_a_hit_is_not_called_isolated() -> None:
    by_tokens: dict[Role, bool | None] = {
        "same": True,
        "other": False,
        "none": False,
        "none-again": True,
        "after-none": False,
    }
    assert judge(Evidence(by_tokens, {"same": True, "other": True})) == ("timing-differs", ("other",))


@pytest.mark.parametrize(
    ("counts", "saw"),
    [
        ((1008, 1008, 1008), True),
        ((0, 0, 0), False),
        ((9, 7, 9), False),  # the template's head, which all prompts share
        ((1008, 0, 1008), None),
        ((200, 200, 200), None),
        ((1008, None, 1008), None),
        ((None, None, None), None),
    ],
)
def test_by_tokens_a_prefix_was_seen_in_all_rounds_or_in_none(counts: tuple[int | None, ...], saw: bool | None) -> None:
    asked = [Asked("other", count, None) for count in counts]
    assert evidence(asked, prefix_tokens=1024, head_tokens=10).by_tokens == {"other": saw}


@pytest.mark.parametrize(
    ("first", "same", "other", "saw"),
    [
        ((90, 80, 100), (10, 12, 11), (95, 85, 80), (False, True, False)),
        ((90, 80, 100), (10, 12, 11), (11, 12, 10), (False, True, True)),
        ((90, 80, 100), (10, 12, 11), (11, 90, 10), (False, True, None)),
        ((90, 15, 100), (10, 12, 11), (95, 85, 80), (None, None, None)),
        ((90, 80, 100), (10, None, 11), (95, 85, 80), (None, None, None)),
    ],
)
def test_by_the_clock_hits_must_stand_apart(
    first: tuple[float, ...], same: tuple[float | None, ...], other: tuple[float, ...], saw: tuple[bool | None, ...]
) -> None:
    times: list[tuple[Role, tuple[float | None, ...]]] = [("first", first), ("same", same), ("other", other)]
    asked = [Asked(role, None, time) for role, all_times in times for time in all_times]
    assert tuple(evidence(asked, 1024, 10).by_clock[role] for role, _ in times) == saw
