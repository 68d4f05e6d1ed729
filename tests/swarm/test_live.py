"""The figures of the page's tab: the same however the requests are spread over workers, and never a guess."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.swarm.live import COLUMNS, HIT, MISS, UNREPORTED, LiveFigures, outcome
from tests.swarm.fakes import through_locust

STATUSES = ["ok", "ok", "ok", "http_error", "truncated", "cancelled"]


def request(**changes: Any) -> dict[str, Any]:
    """The columns of a finished request that the figures are made of."""
    row = {"target": "here", "kind": "agent-loop", "warmth": "cold", "status": "ok", "ttft_ms": 100.0, "tpot_ms": 10.0}
    return {**row, "late_ms": 0.5, "prompt_tokens": 1000, "cached_tokens": 0, **changes}


def cells(*rows: dict[str, Any]) -> dict[str, Any]:
    """The only row of the table of these requests."""
    figures = LiveFigures()
    for row in rows:
        figures.add(row)
    (only,) = figures.rows()
    return only


requests = st.builds(
    request,
    target=st.sampled_from(["here", "there"]),
    kind=st.sampled_from(["agent-loop", "multi-round"]),
    warmth=st.sampled_from(["cold", "warm"]),
    status=st.sampled_from(STATUSES),
    ttft_ms=st.none() | st.floats(0, 1e7),
    tpot_ms=st.none() | st.floats(0, 1e5),
    prompt_tokens=st.none() | st.integers(1, 200_000),
    cached_tokens=st.none() | st.integers(0, 200_000),
    late_ms=st.none() | st.floats(0, 1e5),
)


@given(st.lists(st.tuples(requests, st.integers(0, 2), st.booleans())))
def test_workers_that_report_now_and_then_add_up_to_one_that_saw_all(
    seen: list[tuple[dict[str, Any], int, bool]],
) -> None:
    one, master, workers = LiveFigures(), LiveFigures(), [LiveFigures() for _ in range(3)]
    for row, worker, reports in seen:
        one.add(row)
        workers[worker].add(row)
        if reports:
            master.merge(through_locust({"figures": workers[worker].take()})["figures"])
    for figures in workers:
        master.merge(through_locust({"figures": figures.take()})["figures"])
        assert figures.take() == []
    assert master.rows() == one.rows()
    for target in ("here", "there"):
        assert master.of_target(target) == one.of_target(target)


@given(st.lists(st.floats(1e-3, 1e7), min_size=1))
def test_percentiles_are_off_by_half_a_percent_at_most(times_ms: list[float]) -> None:
    row = cells(*(request(ttft_ms=time, tpot_ms=time) for time in times_ms))
    ordered = sorted(times_ms)
    for column, share in (("ttft_p50", 0.50), ("ttft_p99", 0.99), ("tpot_p50", 0.50)):
        true = ordered[math.ceil(share * len(ordered)) - 1]
        rounding = 0.005 if true < 10 else 0.05 if true < 100 else 0.5
        assert abs(row[column] - true) <= 0.00499 * true + rounding + 1e-6


def test_one_row_for_each_kind_and_warmth() -> None:
    figures = LiveFigures()
    for key in ("multi-round warm", "agent-loop warm", "agent-loop cold", "agent-loop cold"):
        kind, warmth = key.split()
        figures.add(request(kind=kind, warmth=warmth))
    rows = figures.rows()
    assert [row["sessions"] for row in rows] == ["agent-loop cold", "agent-loop warm", "multi-round warm"]
    assert [row["requests"] for row in rows] == [2, 1, 1]
    assert all(list(row) == list(COLUMNS) for row in rows)


def test_several_targets_have_rows_of_their_own() -> None:
    figures = LiveFigures()
    for target, ttft_ms in (("there", 300.0), ("here", 100.0)):
        figures.add(request(target=target, ttft_ms=ttft_ms))
    assert [row["sessions"] for row in figures.rows()] == ["here agent-loop cold", "there agent-loop cold"]
    assert [round(row["ttft_p50"], -1) for row in figures.rows()] == [100, 300]
    assert figures.line(["here", "there"]).startswith("2 requests  0 failed")
    assert figures.line(["here"]).startswith("1 requests  0 failed")


def test_unknown_is_never_zero() -> None:
    row = cells(request(cached_tokens=None, ttft_ms=None, tpot_ms=None))
    assert row["hit_rate"] == row["ttft_p50"] == row["ttft_p99"] == row["tpot_p50"] == "-"
    assert row["reported_by"] == "0 of 1"
    assert cells(request(cached_tokens=0))["hit_rate"] == "0.0 %"


def test_hit_rate_is_a_ratio_of_sums_over_those_that_report_both() -> None:
    row = cells(
        request(prompt_tokens=900, cached_tokens=0),
        request(prompt_tokens=100, cached_tokens=100),
        request(prompt_tokens=1000, cached_tokens=None),
        request(prompt_tokens=None, cached_tokens=1000),
    )
    assert row["hit_rate"] == "10.0 %"
    assert row["reported_by"] == "2 of 4"


@pytest.mark.parametrize(
    ("cached", "shown"), [(1, "<0.1 %"), (10, "0.1 %"), (9_999, "99.9 %"), (10_000, "100.0 %"), (8_239, "82.3 %")]
)
def test_hit_rate_is_rounded_down_but_not_to_nothing(cached: int, shown: str) -> None:
    assert cells(request(prompt_tokens=10_000, cached_tokens=cached))["hit_rate"] == shown


def test_failures_are_counted_and_have_no_part_in_the_times() -> None:
    row = cells(
        request(ttft_ms=100.0),
        request(status="truncated", ttft_ms=1.0, tpot_ms=1.0),
        request(status="http_error", ttft_ms=None, tpot_ms=None),
        request(status="cancelled", ttft_ms=1.0, tpot_ms=1.0),
    )
    assert (row["requests"], row["failed"]) == (4, 2)
    assert row["ttft_p50"] == row["ttft_p99"] == pytest.approx(100, abs=1)


@pytest.mark.parametrize(
    ("cached", "prompt", "how"),
    [(0, 1000, MISS), (499, 1000, MISS), (500, 1000, HIT), (1000, 1000, HIT), (None, 1000, UNREPORTED)],
)
def test_a_hit_is_a_request_of_which_half_the_prompt_was_cached(cached: int | None, prompt: int, how: str) -> None:
    assert outcome(cached, prompt) == how
    figures = LiveFigures()
    figures.add(request(cached_tokens=cached, prompt_tokens=prompt))
    figures.add(request(target="there"))
    assert {name: of.requests for name, of in figures.of_target("here").items() if of.requests} == {how: 1}


def test_a_refused_session_is_a_failure_without_times() -> None:
    figures = LiveFigures()
    figures.add(request(status="refused", cached_tokens=None, prompt_tokens=None, ttft_ms=None, late_ms=None))
    refused = figures.of_target("here")[UNREPORTED]
    assert (refused.requests, refused.failed, refused.refused, refused.late) == (1, 1, 1, {})


def test_the_line_of_progress_covers_all_requests_to_the_targets_of_the_leg() -> None:
    figures = LiveFigures()
    assert figures.line(["here"]) == "0 requests  0 failed  TTFT p50 cold - warm - ms  hit rate -"
    figures.add(request(ttft_ms=200.0))
    figures.add(request(warmth="warm", ttft_ms=20.0, cached_tokens=800))
    figures.add(request(warmth="warm", status="timeout", ttft_ms=None, cached_tokens=None))
    said = figures.line(["here"])
    assert said.startswith("3 requests  1 failed  ")
    assert said.endswith("hit rate 40.0 %")
    cold, warm = (float(said.split(f"{word} ")[1].split(" ")[0]) for word in ("cold", "warm"))
    assert cold == pytest.approx(200, rel=0.01)
    assert warm == pytest.approx(20, rel=0.01)
