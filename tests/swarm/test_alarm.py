"""An alarm never goes off before its time, and lets everybody else run meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import gevent
import pytest

from harness.swarm.alarm import Alarm


@pytest.fixture(params=["linux", "darwin"])
def alarm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Alarm]:
    """With timers that are files, and with the event loop's own."""
    monkeypatch.setattr("sys.platform", request.param)
    with closing(Alarm()) as made, gevent.Timeout(20):
        yield made


def test_it_never_goes_off_too_early(alarm: Alarm) -> None:
    for after_ns in (1, 50_000, 400_000, 1_300_000, 7_000_000):
        due_ns = time.time_ns() + after_ns
        alarm.sleep_until(due_ns)
        assert time.time_ns() >= due_ns


def test_what_has_passed_is_not_waited_for(alarm: Alarm) -> None:
    assert not alarm.sleep_until(time.time_ns() - 1)
    assert not alarm.sleep_until(0)
    assert alarm.sleep_until(time.time_ns() + 5_000_000)


def test_others_go_on_meanwhile(alarm: Alarm) -> None:
    ticks: list[None] = []

    def tick() -> None:
        while True:
            ticks.append(None)
            gevent.sleep(0.001)

    other = gevent.spawn(tick)
    alarm.sleep_until(time.time_ns() + 50_000_000)
    other.kill()
    assert len(ticks) > 2


def test_it_may_be_given_up(alarm: Alarm) -> None:
    sleeper = gevent.spawn(alarm.sleep_until, time.time_ns() + 60_000_000_000)
    gevent.sleep(0.001)
    sleeper.kill()
    assert alarm.sleep_until(time.time_ns() + 1_000_000)
