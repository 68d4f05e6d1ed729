"""How sure a target's numbers are: which requests each figure is of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.analysis.certainty import COLUMNS, Certainty, certainty
from harness.analysis.run import Run
from harness.record.manifest import Phase
from harness.statistics.wilson import wilson
from tests.analysis.rows import Row, request

S = 1_000_000_000
PHASES = [Phase(phase="measure", targets=("t",), start_ns=0, end_ns=100 * S)]


def played(**changes: Row) -> list[Row]:
    """25 sessions of 10 requests in 100 s: a cold one without a hit, then 60 of 100 tokens; `changes` by request."""
    rows = []
    for session in range(25):
        for turn in range(10):
            sent_ns = (10 * turn * S) + session * S // 5
            row = request(
                session=session, turn=turn, request_id=f"{session}-{turn}", t_due=sent_ns - S // 10, t_send=sent_ns,
                t_end=sent_ns + S, prompt_tokens=100, cached_tokens=60 if turn else 0, ttft_ms=100.0 + session,
                ttft_due_ms=200.0 + session, e2e_ms=1_000.0,
            )  # fmt: skip
            rows.append(row | changes.get(f"r{session}_{turn}", {}))
    return rows


def found(run: Run) -> Certainty:
    (target,) = run.by_target()
    rows = target.requests
    return certainty(rows[list(COLUMNS)], rows.index.isin(target.counted.index), target.phases)


def test_intervals_are_of_the_measured_requests(make_run: Callable[..., Run]) -> None:
    warm_up = request(phase="warmup", prompt_tokens=100, cached_tokens=100, ttft_ms=9_999.0, session=None)
    one = found(make_run([*played(), warm_up], phases=PHASES))
    assert one.hit_rate.value == pytest.approx(0.54)
    assert one.hits.value == pytest.approx(0.9)
    assert (one.hit_rate.low, one.hit_rate.high) == pytest.approx((0.54, 0.54))  # every session is alike
    assert one.ttft["p50"].value == pytest.approx(112)
    assert (one.failed.value, one.failed.high) == (0, (wilson(0, 250) or (0, 0))[1])
    assert [each.sentence() for each in one.censored] == [None, None, None]
    (_, steady), (_, intervals) = one.lines()
    assert steady == one.steady.sentence()
    assert intervals.startswith(
        "hit rate 54.0 % to 54.0 %, requests with a hit 85.7 % to 93.1 %, failed 0.0 % to 1.5 %,"
    )


def test_what_the_end_cut_off_has_its_age_and_is_no_failure(make_run: Callable[..., Run]) -> None:
    gone = {"status": "cancelled", "t_end": None, "e2e_ms": None, "cached_tokens": None, "prompt_tokens": None}
    waiting = gone | {"ttft_ms": None, "ttft_due_ms": None}
    failed = {"status": "timeout", "ttft_ms": None, "ttft_due_ms": None, "e2e_ms": None}
    # Sent at 94.8, 90.4, 90.2 and 90 s; the last had its first token.
    run = make_run(played(r24_9=waiting, r2_9=waiting, r1_9=waiting, r0_9=gone, r3_0=failed), phases=PHASES)
    one = found(run)
    ttft, due, e2e = one.censored
    assert (ttft.cut_off, ttft.requests) == (3, 249)
    assert ttft.oldest_ms == pytest.approx(9_800)
    assert due.oldest_ms == pytest.approx(9_900)
    assert e2e.cut_off == 4
    assert e2e.oldest_ms == pytest.approx(10_000)
    assert one.failed.value == pytest.approx(1 / 246)
    assert "TTFT: the end of the run cut off 3 of 249 requests" in str(ttft.sentence())
    assert ("cut off at the end", ttft.sentence()) in list(one.lines())


def test_a_percentile_that_the_start_alone_made_has_no_interval_and_says_why(make_run: Callable[..., Run]) -> None:
    start = {f"r{session}_0": {"ttft_ms": 900.0 + session} for session in range(25)}
    one = found(make_run(played(**start), phases=PHASES))
    assert one.ttft["p90"].low is None
    assert one.ttft["p90"].reason.startswith("the slowest 10 % are worth 3.3 separate")
    assert one.ttft["p50"].low is not None
    assert f"none for TTFT p90 ({one.ttft['p90'].reason})" in dict(one.lines())["95 % intervals"]


def test_a_hit_rate_that_rises_is_said_to_with_when(make_run: Callable[..., Run]) -> None:
    cold = {f"r{session}_{turn}": {"cached_tokens": 0} for session in range(25) for turn in (1, 2)}
    one = found(make_run(played(**cold), phases=PHASES))
    assert one.steady.from_s == pytest.approx(24.8)
    assert one.steady.sentence().startswith("steady from 25 s on: hit rate still rises until 25 s: 0.0 % -> 60.0 %.")


def test_a_request_that_timed_out_is_under_way_no_longer(make_run: Callable[..., Run]) -> None:
    lost = {"status": "timeout", "t_end": None, "t_last": None, "ttft_ms": None, "e2e_ms": None}
    timed_out = {f"r{session}_{turn}": lost for session in range(0, 25, 5) for turn in range(10)}
    steady = found(make_run(played(**timed_out), phases=PHASES)).steady
    assert next(one.from_s for one in steady.settled if one.name == "requests in flight") is not None


def test_without_requests_nothing_is_known(make_run: Callable[..., Run]) -> None:
    one = found(make_run([]))
    assert (one.hit_rate.value, one.failed.value, one.ttft["p99"].value, one.censored) == (None, None, None, ())
    assert one.steady.sentence().startswith("not known: 0 requests")
    assert dict(one.lines())["95 % intervals"] == (
        "none for hit rate, requests with a hit, failed, TTFT p50, TTFT p90, TTFT p99 (no request tells it)"
    )


def test_why_there_is_no_interval_is_said_once_for_all_it_holds_for(make_run: Callable[..., Run]) -> None:
    some = [row for row in played() if row["session"] < 3]
    told = dict(found(make_run(some, phases=PHASES)).lines())["95 % intervals"]
    assert told.count("3 sessions are too few for an interval") == 1
    assert told.startswith("requests with a hit ")
    assert told.endswith("none for hit rate, TTFT p50, TTFT p90, TTFT p99 (3 sessions are too few for an interval)")
