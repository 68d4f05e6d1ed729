"""What makes the numbers of a target doubtful, as every output says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.analysis.flags import doubts, flags
from harness.analysis.run import Run
from harness.analysis.summary import summarise
from tests.analysis.rows import request

MakeRun = Callable[..., Run]


@pytest.mark.parametrize(
    ("errors_ms", "verdict", "says"),
    [
        ([0.1] * 100, "good", "is off by at most 0.10 ms in 99 of 100 requests, and by 0.10 ms in half of them"),
        ([0.1] * 90 + [72.0] * 10, "open", "High percentiles are less exact than they look."),
        ([9.0] * 100, "bad", "All times are less exact than they look."),
        ([None] * 100, "open", "there are no kernel stamps"),
    ],
)
def test_arrival_stamps_are_held_against_the_ttft(
    make_run: MakeRun, errors_ms: list[float | None], verdict: str, says: str
) -> None:
    rows = [
        request(request_id=str(n), ttft_ms=22.0, t_first=1, chunks=1, clock="kernel", stamp_error_ms=error)
        for n, error in enumerate(errors_ms)
    ]
    (target,) = make_run(rows).by_target()
    summary = summarise(target)
    (flag,) = (one for one in flags(summary) if one.key == "stamps")
    assert flag.verdict == verdict
    assert says in flag.sentence
    assert (flag in doubts(summary)) == (verdict == "bad")


def test_what_the_record_says_is_a_problem_of_each_target(make_run: MakeRun) -> None:
    run = make_run([request()], problems=["worker 1 was lost"])
    (target,) = run.by_target()
    assert "worker 1 was lost" in [flag.sentence for flag in doubts(summarise(target), run.problems)]
