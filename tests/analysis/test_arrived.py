"""How many sessions arrived in an open loop, beside how many the rate asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.analysis import Run
from harness.analysis.arrived import Arrived, arrived
from harness.record.manifest import Phase
from tests.analysis.rows import Row, request

S = 1_000_000_000
PHASES = [
    Phase(phase="warmup", targets=("t",), start_ns=0, end_ns=50 * S),
    Phase(phase="ramp", targets=("t",), start_ns=100 * S, end_ns=104 * S),
    Phase(phase="measure", targets=("t",), start_ns=104 * S, end_ns=110 * S),
]
MakeRun = Callable[..., Run]


def rows() -> list[Row]:
    """Eighteen sessions of two turns in 10 s, two of them refused, one with a sub-agent; one was under way before."""
    made = [request(phase="warmup", session=-1, turn=0)]
    for number in range(18):
        phase = "ramp" if number < 8 else "measure"
        if number in (6, 12):
            made.append(request(phase=phase, session=number, turn=0, status="refused", t_send=None))
        else:
            made += [request(phase=phase, session=number, turn=turn) for turn in (0, 1)]
    made.append(request(session=100, turn=0, parent_request="r1-0-3-0"))
    made.append(request(phase="ramp", session=50, turn=1))
    return made


def of(make_run: MakeRun, **options: Any) -> Arrived | None:
    return arrived(make_run(rows(), phases=PHASES, options=options).only_target())


@pytest.mark.parametrize(
    ("arrivals", "rate", "asked", "spread", "words"),
    [
        ("poisson", "2", 20.0, 20**0.5, "(asked for: 2/s; chance makes it ± 0.45/s)"),
        ("gamma:3", "5s:1, 5s:1-5", 20.0, 3 * 20**0.5, "(asked for: 2/s; chance makes it ± 1.3/s)"),
        ("constant", "2", 20.0, 0.0, "(asked for: 2/s)"),
        ("trace", None, None, None, "1.8/s;"),
    ],
)
def test_arrivals_stand_beside_what_the_rate_asked_for(
    make_run: MakeRun, arrivals: str, rate: str | None, asked: float | None, spread: float | None, words: str
) -> None:
    found = of(make_run, load="open", arrivals=arrivals, rate=rate)
    assert found is not None
    assert (found.sessions, found.refused, found.seconds) == (18, 2, 10.0)
    assert (found.asked, found.spread) == (asked, spread)
    assert found.sentence().startswith("Arrivals: 18 sessions in 10.0 s, 1.8/s")
    assert words in found.sentence()
    assert found.sentence().endswith("2 refused, as all seats were taken")


def test_a_closed_loop_and_a_run_from_before_there_was_another_have_none(make_run: MakeRun) -> None:
    assert of(make_run, load="closed", arrivals=None, rate=None) is None
    assert of(make_run) is None
    assert arrived(make_run(rows(), options={"load": "open"}).only_target()) is None  # it ended before its load
