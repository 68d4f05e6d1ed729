"""What a change of the prompts costs, over the requests that both runs sent."""

from __future__ import annotations

from collections.abc import Callable

from harness.analysis import Run
from harness.analysis.cost import Cost, cost
from harness.analysis.run import TargetRun
from tests.analysis.rows import Row, request

MakeRun = Callable[..., Run]


def turn(session: int, number: int, cached: int | None, ttft_ms: float, **changes: object) -> Row:
    fields = {"session": session, "turn": number, "prompt_tokens": 100, "cached_tokens": cached, "ttft_ms": ttft_ms}
    return request(**{**fields, "warmth": "warm" if number else "cold", "request_id": f"{session}-{number}", **changes})


def run_of(make_run: MakeRun, *rows: Row) -> TargetRun:
    return make_run(rows).only_target()


def test_only_what_both_sent_is_compared(make_run: MakeRun) -> None:
    before = run_of(make_run, turn(0, 0, 0, 50.0), turn(0, 1, 90, 10.0), turn(0, 2, 90, 10.0), turn(1, 0, 40, 30.0))
    after = run_of(make_run, turn(0, 0, 0, 50.0), turn(0, 1, 10, 40.0), turn(0, 2, 10, 60.0))
    found = cost(before, after)
    assert found == Cost(3, 3, 180 / 300, 20 / 300, 10.0, 50.0)
    assert found.sentence("a clock in front") == (
        "a clock in front: the token hit rate goes from 60.0% to 6.7%, so of 1,000 prompt tokens 533 more are "
        "computed; the median TTFT of warm turns goes from 10 to 50 ms (over the 3 requests that both runs sent)."
    )


def test_failures_and_silence_are_left_out(make_run: MakeRun) -> None:
    before = run_of(make_run, turn(0, 0, 0, 50.0), turn(0, 1, None, 10.0))
    after = run_of(make_run, turn(0, 0, 0, 50.0, status="truncated"), turn(0, 1, 10, 40.0))
    found = cost(before, after)
    assert (found.requests, found.reporting, found.rate_before, found.rate_after) == (1, 0, None, None)
    assert "not known, as the answers report no cached tokens" in found.sentence("x")


def test_runs_with_nothing_in_common_say_so(make_run: MakeRun) -> None:
    found = cost(run_of(make_run, turn(0, 0, 0, 50.0)), run_of(make_run, turn(1, 0, 0, 50.0)))
    assert found == Cost(0, 0, None, None, None, None)
    assert "no warm turn is in both" in found.sentence("x")
