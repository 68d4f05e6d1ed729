from __future__ import annotations

import time

import pytest

from harness.sim.clock import ScaledClock, VirtualClock, play
from tests.sim.counting import asked, engine


def test_a_scaled_clock_runs_so_many_times_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 5_000_000_000
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    clock = ScaledClock(time_scale=4.0)
    now_ns += 500_000_000
    assert clock.now_s() == pytest.approx(2.0)
    assert clock.wall_s(6.0) == pytest.approx(1.0)
    assert clock.wall_s(1.0) == pytest.approx(-0.25)


def test_a_virtual_clock_is_at_the_time_that_is_waited_for() -> None:
    clock = VirtualClock()
    assert (clock.wall_s(3.0), clock.now_s()) == (0.0, 3.0)
    assert (clock.wall_s(2.0), clock.now_s()) == (0.0, 3.0)


def test_what_arrives_while_a_step_runs_waits_for_its_end() -> None:
    scheduler = engine("vllm")
    first, second, third = asked(1, 20, 2), asked(2, 20, 2), asked(3, 20, 2)
    ended_s = play(scheduler, [(1.0, first), (1.000001, second), (50.0, third)])
    assert first.admitted_s == 1.0
    assert first.first_token_s is not None
    assert second.admitted_s == first.first_token_s
    assert third.admitted_s == third.arrived_s == 50.0
    assert ended_s == third.ended_s


def test_the_same_requests_take_the_same_time_again() -> None:
    ends = [
        play(engine("sglang", jitter=0.3, seed=5), [(number / 100, asked(number + 1, 200, 20)) for number in range(50)])
        for _ in range(2)
    ]
    assert ends[0] == ends[1]


def test_nothing_takes_no_time() -> None:
    assert play(engine("vllm"), []) == 0.0
