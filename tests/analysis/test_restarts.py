"""Servers that were restarted while they were measured."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.analysis import Run
from harness.analysis.agreement import agreement
from harness.analysis.counters import CounterRate, of_counters
from harness.analysis.pages import clock_time, replicas
from harness.analysis.run import TargetRun
from harness.record.manifest import TargetRecord
from tests.analysis.rows import CACHED, PROMPT, Row, request, sample, scrape, target

MakeRun = Callable[..., Run]
S = 1_000_000_000
T0 = 1_700_000_000 * S
"""22:13:20 UTC."""


def page(second: int, moment: str, hits: float, queries: float, **changes: object) -> list[Row]:
    values = {"hits_total": hits, "queries_total": queries}
    up, *counters = scrape(T0 + second * S, moment, values, **changes)
    return [up | {"reset": None}, *counters]


def failed(second: int) -> list[Row]:
    return scrape(T0 + second * S, "periodic", {"up": 0.0}, error="connection refused")


RESTARTED = [
    page(0, "warmup_end", 10, 100, reset=False),
    page(10, "periodic", 40, 200, reset=False),
    failed(20),
    # The new process has counted past the old values by the time of this scrape.
    page(30, "periodic", 500, 1_000, reset=True),
    page(60, "after", 700, 1_400, reset=False),
]
BETWEEN = "t was restarted between 22:13:30.0 and 22:13:50.0 UTC"


@pytest.fixture
def counted(make_run: MakeRun) -> Callable[..., CounterRate]:
    def calculate(*scrapes: list[Row], of: TargetRecord | None = None) -> CounterRate:
        run = load(make_run, scrapes, of or target())
        return of_counters(replicas(run.samples, run.target), run.target)

    return calculate


def load(make_run: MakeRun, scrapes: tuple[list[Row], ...], of: TargetRecord) -> TargetRun:
    requests = [request(cached_tokens=40, prompt_tokens=100)]
    return make_run(requests, [row for rows in scrapes for row in rows], targets=[of]).only_target()


Counted = Callable[..., CounterRate]


def test_the_whole_is_unknown_even_if_the_counters_have_grown_past_their_old_values(counted: Counted) -> None:
    found = counted(*RESTARTED)

    assert (found.rate, found.cached_tokens, found.prompt_tokens) == (None, None, None)
    assert found.reason == BETWEEN


def test_each_stretch_between_two_good_scrapes_is_told_by_itself(counted: Counted) -> None:
    before, after = counted(*RESTARTED).stretches

    assert (before.cached_tokens, before.prompt_tokens, before.rate) == (30, 100, 0.3)
    assert (before.start_ns, before.end_ns) == (T0, T0 + 10 * S)
    # From the first scrape of the new process: what it had counted until then is lost.
    assert (after.cached_tokens, after.prompt_tokens, after.rate) == (200, 400, 0.5)
    assert (after.start_ns, after.end_ns) == (T0 + 30 * S, T0 + 60 * S)
    assert {before.replica, after.replica} == {"t"}


def test_two_restarts_make_three_stretches(counted: Counted) -> None:
    found = counted(
        page(0, "warmup_end", 10, 100, reset=False),
        page(10, "periodic", 20, 200, reset=False),
        page(20, "periodic", 0, 0, reset=True),
        page(30, "periodic", 80, 100, reset=False),
        page(40, "periodic", 5, 50, reset=True),
        page(50, "after", 10, 60, reset=False),
    )

    assert [stretch.rate for stretch in found.stretches] == [0.1, 0.8, 0.5]
    assert found.reason == (
        "t was restarted between 22:13:30.0 and 22:13:40.0 UTC; t was restarted between 22:13:50.0 and 22:14:00.0 UTC"
    )


def test_a_restart_at_the_end_leaves_what_came_before(counted: Counted) -> None:
    (before,) = counted(*RESTARTED[:2], page(60, "after", 0, 0, reset=True)).stretches

    assert (before.rate, before.end_ns) == (0.3, T0 + 10 * S)


def test_a_replica_that_was_not_restarted_is_one_stretch(counted: Counted) -> None:
    of_a = [[row | {"replica": "a"} for row in rows] for rows in RESTARTED]
    of_b = [
        page(0, "warmup_end", 0, 0, replica="b", reset=False),
        page(60, "after", 9, 10, replica="b", reset=False),
    ]
    found = counted(*of_a, *of_b)

    assert found.rate is None
    assert found.reason == BETWEEN.replace("t was", "t replica a was")
    assert [(stretch.replica, stretch.rate) for stretch in found.stretches] == [
        ("t replica a", 0.3),
        ("t replica a", 0.5),
        ("t replica b", 0.9),
    ]


def test_a_stretch_that_cannot_be_told_says_why(counted: Counted) -> None:
    _, after = counted(*RESTARTED[:4], page(60, "after", 500, 1_000, reset=False)).stretches

    assert (after.rate, after.cached_tokens, after.prompt_tokens) == (None, 0, 0)
    assert after.reason == "the counters did not move (prompt tokens)"


def test_a_series_that_comes_back_later_is_no_second_restart(counted: Counted) -> None:
    without = [row for row in page(20, "periodic", 0, 0, reset=True) if row["name"] != "hits_total"]
    back = [
        *page(30, "after", 0, 100, reset=False)[:1],
        sample("queries_total", 100, T0 + 30 * S, "after", reset=False),
    ]
    back.append(sample("hits_total", 60, T0 + 30 * S, "after", reset=True))
    cached = CACHED.model_copy(update={"absent_is_zero": True})
    found = counted(*RESTARTED[:2], without, back, of=target(metrics=[cached, PROMPT]))

    assert [stretch.rate for stretch in found.stretches] == [0.3, 0.6]
    assert (found.reason or "").count("restarted") == 1


def test_a_restart_before_the_measured_phase_does_no_harm(counted: Counted) -> None:
    found = counted(page(0, "warmup_end", 10, 100, reset=True), page(60, "after", 20, 200, reset=False))

    assert (found.cached_tokens, found.reason, found.stretches) == (10, None, ())


def test_counters_and_requests_cannot_be_compared_over_a_restart(make_run: MakeRun) -> None:
    run = load(make_run, tuple(RESTARTED), target())
    compared = agreement(run.requests, of_counters(replicas(run.samples, run.target), run.target))

    assert compared.sentence() == f"cannot be compared: {BETWEEN}"
    assert (compared.cached.requests, compared.cached.difference) == (40, None)


def test_times_of_day_are_utc_to_a_tenth_of_a_second() -> None:
    assert clock_time(T0 + 1_290_000_000) == "22:13:21.2"
