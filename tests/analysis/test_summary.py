from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from harness.analysis import Run
from harness.analysis.summary import Group, Summary, summarise
from tests.analysis.rows import Row, request, scrape, target

MakeRun = Callable[..., Run]


def group(summary: Summary, warmth: str) -> Group:
    (found,) = [group for group in summary.groups if group.warmth == warmth]
    return found


def test_cold_warm_and_all_turns_stand_apart(make_run: MakeRun) -> None:
    rows = [
        request(warmth="cold", ttft_ms=100.0, cached_tokens=0, prompt_tokens=100),
        request(warmth="warm", ttft_ms=20.0, cached_tokens=90, prompt_tokens=120),
        request(warmth="warm", ttft_ms=22.0, cached_tokens=110, prompt_tokens=140),
    ]
    summary = summarise(make_run(rows).only_target())

    assert [found.warmth for found in summary.groups] == ["cold", "warm", "all"]
    assert [found.requests for found in summary.groups] == [1, 2, 3]
    assert group(summary, "warm").times.ttft.p50 == 21.0
    assert group(summary, "warm").hit_rate.rate == 200 / 260
    assert summary.hit_rate.rate == 200 / 360
    assert summary.warm_to_cold[0].ratio == pytest.approx(0.21)


def test_kinds_and_scenarios_stand_apart(make_run: MakeRun) -> None:
    rows = [request(kind="multi-round"), request(kind="agent-loop"), request(kind="agent-loop", scenario="other")]
    summary = summarise(make_run(rows).only_target())

    found = [(found.kind, found.scenario) for found in summary.groups if found.warmth == "all"]
    assert found == [("agent-loop", "demo"), ("agent-loop", "other"), ("multi-round", "demo")]


def test_other_phases_do_not_count(make_run: MakeRun) -> None:
    rows = [request(phase="warmup", ttft_ms=9_000.0), request(phase="check", kind=None), request(ttft_ms=1.0)]
    summary = summarise(make_run(rows).only_target())

    assert group(summary, "all").requests == 1
    assert group(summary, "all").times.ttft.p99 == 1.0


def test_times_are_given_with_and_without_failures(make_run: MakeRun) -> None:
    rows = [request(ttft_ms=10.0), request(ttft_ms=20.0), request(status="timeout", ttft_ms=5.0)]
    found = group(summarise(make_run(rows).only_target()), "all")

    assert (found.failed, found.by_status) == (1, {"timeout": 1})
    assert (found.times.ttft.n, found.times.ttft.p50) == (2, 15.0)
    assert found.times_with_failures is not None
    assert (found.times_with_failures.ttft.n, found.times_with_failures.ttft.p50) == (3, 20.0)
    assert found.times_with_failures.ttft.p90 == math.inf


def test_what_the_end_of_the_test_cut_off_is_no_failure(make_run: MakeRun) -> None:
    rows = [request(ttft_ms=10.0), request(status="cancelled")]
    found = group(summarise(make_run(rows).only_target()), "all")

    assert (found.requests, found.failed, found.by_status) == (2, 0, {"cancelled": 1})
    assert found.times_with_failures is None


def test_the_ratio_needs_both_warm_and_cold_successes(make_run: MakeRun) -> None:
    rows = [request(warmth="cold", status="timeout"), request(warmth="warm", ttft_ms=5.0)]
    (pair,) = summarise(make_run(rows).only_target()).warm_to_cold

    assert (pair.ratio, pair.cold_ttft_ms, pair.warm_ttft_ms) == (None, None, 5.0)


def test_planned_lengths_are_compared_where_both_are_known(make_run: MakeRun) -> None:
    rows = [
        request(planned_prompt_tokens=100, prompt_tokens=100),
        request(planned_prompt_tokens=100, prompt_tokens=97),
        request(planned_prompt_tokens=100, prompt_tokens=None),
    ]
    lengths = summarise(make_run(rows).only_target()).planned_lengths

    assert (lengths.compared, lengths.exact, lengths.largest_difference_tokens) == (2, 1, 3)


def test_the_quality_of_the_stamps_is_told(make_run: MakeRun) -> None:
    rows = [
        request(
            clock="kernel", t_first=2_000, stamp_error_ms=0.0, coalesced=0, chunks=30, clock_stepped=False, late_ms=1.0
        ),
        request(
            clock="kernel", t_first=2_000, stamp_error_ms=1.0, coalesced=4, chunks=50, clock_stepped=True, late_ms=None
        ),
        request(status="connect_error", clock="user", clock_stepped=False),
    ]
    stamps = summarise(make_run(rows).only_target()).stamps

    assert stamps.by_clock == {"kernel": 2}
    assert stamps.error_ms.p99 == pytest.approx(0.99)
    assert stamps.coalesced_share == 4 / 80
    assert stamps.clock_steps == 1
    assert stamps.late_ms.p99 == 1.0


def test_counters_and_requests_are_held_against_each_other(make_run: MakeRun) -> None:
    pages = [
        *scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}),
        *scrape(2, "after", {"hits_total": 40, "queries_total": 100}),
    ]
    summary = summarise(make_run([request(cached_tokens=40, prompt_tokens=100)], pages).only_target())

    assert summary.counters.rate == summary.hit_rate.rate == 0.4
    assert summary.agreement.sentence() == "exactly equal"


def test_a_run_without_measured_requests_is_summarised_too(make_run: MakeRun) -> None:
    summary = summarise(make_run([], targets=[target(metrics=[])]).only_target())

    assert (summary.groups, summary.warm_to_cold, summary.hit_rate.rate) == ((), (), None)
    assert summary.counters.reason == "kvswarm knows no metrics of e"
    assert summary.stamps.coalesced_share is None


HOW = {"cached_tokens": "start it with --report", "metrics": "start it with --metrics", "reset": "start it with --dev"}
PAGES = [
    *scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}),
    *scrape(2, "after", {"hits_total": 40, "queries_total": 100}),
]


@pytest.mark.parametrize(
    ("cached_tokens", "samples", "lacks"),
    [
        (0, PAGES, set()),
        (None, PAGES, {"cached_tokens"}),
        (0, scrape(2, "after", {"up": 0.0}, error="answered 404"), {"metrics"}),
        (None, scrape(2, "after", {"other": 1}), {"cached_tokens", "metrics"}),
        # It was not asked for any.
        (0, [], set()),
    ],
)
def test_what_the_server_lacks_is_said_with_how_to_have_it(
    make_run: MakeRun, cached_tokens: int | None, samples: list[Row], lacks: set[str]
) -> None:
    rows = [request(cached_tokens=7), request(cached_tokens=cached_tokens), request(status="timeout")]
    summary = summarise(make_run(rows, samples, targets=[target(advice=HOW)]).only_target())

    assert summary.advice == {need: HOW[need] for need in lacks}
