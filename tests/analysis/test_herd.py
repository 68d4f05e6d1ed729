from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.analysis import Run
from harness.analysis.herd import LEAST_TOKENS, Herd, Herds, find_herds
from harness.analysis.report import render
from harness.cache.prompt import common_tokens
from tests.analysis.prompts import SECOND, START, asked, log_of
from tests.analysis.rows import Row

MakeRun = Callable[..., Run]

DOCUMENT = (7, 1_000)


def about(question: int, at_s: float, first_s: float | None, cached: int | None, **changes: Any) -> Row:
    """A question of 10 tokens to the document."""
    return asked([DOCUMENT, (100 + question, 10)], at_s, first_s, cached, **changes)


def herds(*rows: Row, granularity_tokens: int = 1) -> Herds:
    return find_herds(log_of(rows), granularity_tokens)


NONE = Herds(herds=0, requests=0, tokens=0, unknown=0, largest=None)


def test_those_that_came_before_the_first_one_had_its_first_token_are_a_herd() -> None:
    found = herds(
        about(1, at_s=0, first_s=5, cached=0),
        about(2, at_s=1, first_s=6, cached=0),
        about(3, at_s=4, first_s=7, cached=0),
        about(4, at_s=5, first_s=5.1, cached=1_000),
    )

    assert found.largest == Herd(requests=3, tokens=2_000, start_ns=START, end_ns=START + 4 * SECOND)
    assert (found.herds, found.requests, found.tokens, found.unknown) == (1, 3, 2_000, 0)
    assert found.sentence() == (
        "thundering herd: 3 requests were sent before the first one with their prefix had reached its first token, "
        "and computed 2,000 tokens again, at 22:13:20.0 UTC"
    )


def test_one_after_the_other_is_no_herd() -> None:
    found = herds(about(1, 0, 1, 0), about(2, 1, 2, 1_000), about(3, 3, 4, 0))

    assert found == NONE
    assert found.sentence() is None


def test_the_largest_of_several_is_named() -> None:
    small, large = (1, 200), (2, 500)
    found = herds(
        asked([small, (11, 5)], 0, 2, 0),
        asked([small, (12, 5)], 1, 3, 0),
        asked([large, (13, 5)], 10, 12, 0),
        asked([large, (14, 5)], 10.5, 13, 0),
        asked([large, (15, 5)], 11.9, 13, 0),
    )

    assert found.largest == Herd(3, 1_000, START + 10 * SECOND, START + 11_900_000_000)
    assert found.sentence() == (
        "thundering herd: 5 requests in 2 herds were sent before the first one with their prefix had reached its "
        "first token, and computed 1,200 tokens again; the largest: 3 requests, 1,000 tokens, at 22:13:30.0 UTC"
    )


def test_only_the_part_of_the_prefix_that_was_not_there_yet_counts() -> None:
    system = (1, 300)
    found = herds(
        asked([system, (2, 50)], 0, 1, 0),
        asked([system, DOCUMENT, (11, 5)], 10, 15, 300),
        asked([system, DOCUMENT, (12, 5)], 11, 16, 300),
    )

    assert found.largest == Herd(2, 1_000, START + 10 * SECOND, START + 11 * SECOND)


def test_what_was_found_all_the_same_was_not_computed_again() -> None:
    """An engine may let requests wait for each other, or share a prompt block by block as it is computed."""
    waited = herds(about(1, 0, 5, 0), about(2, 1, 6, 1_000))
    partly = herds(about(1, 0, 5, 0), about(2, 1, 6, 640))

    assert waited == NONE
    assert partly.tokens == 360


def test_a_request_that_does_not_say_what_it_hit_is_told() -> None:
    found = herds(about(1, 0, 5, None), about(2, 1, 6, None))

    assert (found.tokens, found.unknown) == (1_000, 1)
    assert "computed 1,000 tokens again at most (1 of them do not report what they hit)" in (found.sentence() or "")


@pytest.mark.parametrize(("shared", "requests"), [(LEAST_TOKENS - 1, 0), (LEAST_TOKENS, 2)])
def test_a_short_prefix_makes_no_herd(shared: int, requests: int) -> None:
    found = herds(asked([(1, shared), (2, 9)], 0, 5, 0), asked([(1, shared), (3, 9)], 1, 5, 0))

    assert found.requests == requests


def test_whole_blocks_count_and_never_the_last_token() -> None:
    same = [about(1, 0, 5, 0), about(1, 1, 5, 0)]

    assert herds(*same).tokens == 1_009
    assert herds(*same, granularity_tokens=16).tokens == 1_008


@pytest.mark.parametrize("changes", [{"t_first": None}, {"phase": "warmup"}, {"cache_salt": "other"}])
def test_what_cannot_have_been_computed_twice_is_left_out(changes: dict[str, Any]) -> None:
    assert herds(about(1, 0, 5, 0), about(2, 1, 6, 0, **changes)) == NONE


def test_one_that_never_had_a_first_token_leads_no_herd() -> None:
    assert herds(about(1, 0, None, None, status="timeout"), about(2, 1, 6, 0)) == NONE


def test_the_report_names_it_as_a_note(make_run: MakeRun) -> None:
    out = io.StringIO()
    render([make_run([about(1, 0, 5, 0), about(2, 1, 6, 0)])], Console(file=out, width=400))

    assert "Note: thundering herd: 2 requests were sent before" in out.getvalue()


SHORT_PROMPTS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([60, 130, 200])), min_size=1, max_size=4)
TRAFFIC = st.lists(st.tuples(SHORT_PROMPTS, st.integers(0, 9), st.integers(1, 9), st.integers(0, 300)), max_size=12)


@given(TRAFFIC, st.sampled_from([1, 16]))
def test_it_is_what_looking_at_every_pair_gives(traffic: list[Any], granularity: int) -> None:
    traffic = sorted(traffic, key=lambda sent: sent[1])
    rows = [asked(path, at, at + took, cached) for path, at, took, cached in traffic]
    found = find_herds(log_of(rows), granularity)

    def whole(tokens: int) -> int:
        return tokens - tokens % granularity

    members: dict[int, dict[int, int]] = {}
    for number, (path, at, _, cached) in enumerate(traffic):
        before = [(common_tokens(path, other), sent + took) for other, sent, took, _ in traffic[:number]]
        ready = max((shared for shared, first in before if first <= at), default=0)
        shared = min(max((shared for shared, _ in before), default=0), sum(tokens for _, tokens in path) - 1)
        again = whole(shared) - max(whole(ready), cached)
        if again >= LEAST_TOKENS:
            first = next(number for number, (shared, _) in enumerate(before) if shared > ready)
            members.setdefault(first, {})[number] = again
    tokens = [sum(some.values()) for some in members.values()]

    assert (found.herds, found.tokens) == (len(members), sum(tokens))
    assert found.requests == len(set(members) | {number for some in members.values() for number in some})
    assert (found.largest.tokens if found.largest else 0) == max(tokens, default=0)
