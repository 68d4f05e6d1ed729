"""What isolate says: who saw what, what was tested, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.checks.isolate_evidence import Asked, Role
from harness.checks.isolate_finding import Boundary, finding
from harness.checks.laboratory import Finding

APART: Mapping[Role, int | None] = {
    "first": 0,
    "same": 1024,
    "other": 0,
    "none": 0,
    "none-again": 1024,
    "after-none": 0,
}
ADVICE: Any = {"caching": "start it with caching", "cached_tokens": "start it with counts"}


def boundary(name: str | None, cached: Mapping[Role, int | None], ttft_ms: float = 5.0) -> Boundary:
    asked = [Asked(role, count, ttft_ms) for role, count in cached.items() for _ in range(3)]
    return Boundary.of(name, asked, 1024, 10)


def told(*boundaries: Boundary, granularity: int | None = 16) -> Finding:
    return finding(boundaries, 1024, "vllm", granularity, ADVICE)


def test_isolated_in_words() -> None:
    isolated = told(boundary("cache_salt", APART))
    assert (isolated.verdict, isolated.exit_code) == ("isolated", 0)
    assert isolated.sentence == (
        "cache_salt keeps tenants apart: of a prefix of 1,024 tokens the same tenant hit 1,024 tokens; another tenant "
        "hit 0 tokens; a request without a key hit 0 tokens; a tenant after requests without a key hit 0 tokens. By "
        "the clock alone nothing can be said. Tested: requests to one server that differ in cache_salt alone, one "
        "after the other."
    )
    assert isolated.numbers["cache_salt_same_cached_tokens"] == 1024
    assert isolated.numbers["cache_salt_after_none_cached_tokens"] == 0


def test_one_key_that_does_not_isolate_is_enough() -> None:
    shared = told(boundary("cache_salt", APART), boundary("extra_key", {**APART, "none": 1024}))
    assert (shared.verdict, shared.exit_code) == ("shared", 1)
    assert "cache_salt keeps tenants apart" in shared.sentence
    assert "extra_key does not keep tenants apart" in shared.sentence
    assert "so did others: a request without a key hit 1,024 tokens" in shared.sentence


@pytest.mark.parametrize(
    ("cached", "words"),
    [
        ({**APART, "same": 0}, "the same tenant hit 0 tokens, so that seeing nothing means nothing; start it with"),
        (dict.fromkeys(APART), "nobody counts cached tokens (start it with counts), and no first token came clearly"),
        ({**APART, "none-again": 0}, "a second request without a key hit 0 tokens"),
    ],
)
def test_without_the_pair_there_is_no_verdict(cached: Mapping[Role, int | None], words: str) -> None:
    unclear = told(boundary("cache_salt", cached))
    assert (unclear.verdict, unclear.exit_code) == ("unclear", 2)
    assert words in unclear.sentence


def test_a_round_that_went_otherwise_is_told() -> None:
    """Such as by a restart, or by others who filled the cache."""
    asked = [Asked("same", cached, None) for cached in (1024, 0, 1024)]
    asked += [Asked(role, cached, None) for role, cached in APART.items() if role != "same" for _ in range(3)]
    unclear = told(Boundary.of("cache_salt", asked, 1024, 10))
    assert unclear.verdict == "unclear"
    assert "the same tenant did not hit alike in all rounds; try it again while nothing else uses" in unclear.sentence


def test_the_clock_agrees_where_it_can() -> None:
    times: Mapping[Role, float] = {
        "first": 90,
        "same": 10,
        "other": 91,
        "none": 92,
        "none-again": 10,
        "after-none": 90,
    }
    asked = [Asked(role, APART[role], time) for role, time in times.items() for _ in range(3)]
    sentence = told(Boundary.of("cache_salt", asked, 1024, 10)).sentence
    assert "By the clock too: the first token came after 90.0 ms the first time, 10.0 ms for the same" in sentence


SHARED: Mapping[Role, int | None] = {"first": 0, "same": 1024, "other": 1024}


def test_without_a_key_it_is_said_what_is_shared() -> None:
    shared = told(boundary(None, SHARED), granularity=1)
    assert (shared.verdict, shared.exit_code) == ("shared", 1)
    assert (
        "All tenants share: of a prefix of 1,024 tokens that another one had sent, another tenant hit 1,024 tokens."
        in (shared.sentence)
    )
    assert "shared token by token" in shared.sentence
    assert "Give each tenant a server" in shared.sentence


@pytest.mark.parametrize(
    ("other", "words"),
    [(0, "With a slot each (id_slot) they are kept apart here"), (1024, "does not keep them apart")],
)
def test_slots_are_tried_and_told(other: int, words: str) -> None:
    shared = told(boundary(None, SHARED), boundary("slot", {**SHARED, "other": other}), granularity=1)
    assert shared.exit_code == 1
    assert words in shared.sentence
    assert "--cache-ram 0" in shared.sentence


def test_without_a_key_and_without_a_hit_nothing_is_told() -> None:
    unclear = told(boundary(None, {"first": 0, "same": 0, "other": 0}))
    assert (unclear.verdict, unclear.exit_code) == ("unclear", 2)
