"""Requests held against an objective: who is beyond a limit, who tells nothing, and what is good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.analysis.goodput import Goodput, goodput
from harness.analysis.run import Run
from harness.record.manifest import Phase
from harness.slo.objective import parse_slo
from tests.analysis.rows import Row, request, second

MakeRun = Callable[..., Run]
SECOND = 10**9
LOAD = Phase(phase="measure", targets=("t",), start_ns=0, end_ns=10 * SECOND)
SLO = "ttft_p99<500ms,tpot_p90<50ms,failures<1%"


def of(make_run: MakeRun, rows: list[Row], slo: str = SLO) -> Goodput:
    return goodput(make_run(rows, phases=[LOAD]).only_target(), parse_slo(slo))


def answered(ttft_ms: float, tpot_ms: float | None = 20.0, **changes: Any) -> Row:
    return request(ttft_ms=ttft_ms, tpot_ms=tpot_ms, e2e_ms=900.0, **{"session": 1, **changes})


def counted(found: Goodput) -> list[tuple[int, int]]:
    return [(count.beyond, count.of) for count in found.counts]


def test_good_is_what_meets_every_limit(make_run: MakeRun) -> None:
    rows = [
        answered(499.9),
        answered(500.0),  # "below" is below
        answered(100.0, 60.0),
        answered(700.0, 60.0),
        answered(100.0, None),  # one token: TPOT does not apply
        answered(100.0),
    ]
    found = of(make_run, rows)
    assert counted(found) == [(2, 6), (2, 5), (0, 6)]
    assert (found.requests, found.good, found.share) == (6, 3, 0.5)
    assert found.per_s == 0.3  # 3 in 10 s


def test_failures_and_refusals_are_beyond_every_limit(make_run: MakeRun) -> None:
    rows = [
        answered(100.0),
        answered(100.0, status="truncated"),  # fast as its first token was
        request(status="refused", t_send=None, session=2),
        request(status="timeout", session=3),
    ]
    found = of(make_run, rows)
    assert counted(found) == [(3, 4)] * 3
    assert (found.good, found.requests, found.failed, found.refused) == (1, 4, 3, 1)


def test_what_the_end_of_the_load_cut_off_counts_only_if_it_was_late_already(make_run: MakeRun) -> None:
    early, late = 9 * SECOND, 9 * SECOND + 600_000_000
    rows = [
        answered(100.0),
        request(status="cancelled", t_send=early, t_due=early, session=2),  # 1,000 ms without a token
        request(status="cancelled", t_send=late, t_due=late, session=3),  # 400 ms: who knows
        answered(100.0, None, status="cancelled", t_send=late, t_due=late, session=4),
    ]
    found = of(make_run, rows)
    assert counted(found) == [(1, 3), (0, 1), (0, 1)]
    assert (found.requests, found.good, found.unknown) == (2, 1, 2)
    assert counted(of(make_run, rows, "ttft_due_p99<500ms"))[0] == (1, 1)


def test_requests_of_one_session_that_are_late_together_are_worth_less(make_run: MakeRun) -> None:
    def rows(late: Callable[[int, int], bool]) -> list[Row]:
        return [
            answered(900.0 if late(session, turn) else 100.0, session=session, turn=turn, t_due=turn * 1_000 + session)
            for session in range(100)
            for turn in range(5)
        ]

    apart = of(make_run, rows(lambda session, turn: session % 5 == turn)).counts[0]
    together = of(make_run, rows(lambda session, turn: session % 5 == 0)).counts[0]
    at_once = of(make_run, rows(lambda session, turn: turn == 2)).counts[0]
    assert (apart.beyond, together.beyond, at_once.beyond) == (100, 100, 100)
    assert apart.effect == 1.0
    assert 4.5 < together.effect < 5.5  # all five of a session, or none
    assert at_once.effect > 5  # all of one moment, or none


def test_without_a_request_nothing_is_counted(make_run: MakeRun) -> None:
    found = of(make_run, [request(phase="check")])
    assert counted(found) == [(0, 0)] * 3
    assert found.share is None


def test_what_the_harness_may_have_slowed_down_counts_and_is_told(make_run: MakeRun) -> None:
    rows = [answered(100.0, t_due=5 * SECOND, t_send=5 * SECOND), answered(900.0)]
    run = make_run(rows, health=[second(0, loop_lag_max_ms=400.0), second(5)], phases=[LOAD])
    found = goodput(run.only_target(), parse_slo(SLO))
    assert (found.requests, found.good, found.disturbed) == (2, 1, 1)
