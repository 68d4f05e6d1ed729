"""Who plays what arrives: an idle seat at once, or nobody, and then it is refused; never somebody later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import gevent
import pytest
from gevent.event import Event
from gevent.queue import Queue

from harness.swarm.open_loop import OpenLoop
from harness.workload.schedule import Arrival
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop

WORKLOAD = Workload(agent_loop(), "n")


class Stage:
    """An open loop whose arrivals come when the test says so, and what became of them."""

    def __init__(self) -> None:
        self.refused: list[int] = []
        self.played: list[tuple[str, int | None]] = []
        self.at_ns: list[int] = []
        self.draining = Event()
        self._coming: Queue[Arrival] = Queue()
        self.loop = OpenLoop(iter(self._coming), 0, self._refuse, self.draining)

    def _refuse(self, given: Arrival) -> None:
        self.refused.append(given.session.number)

    def arrive(self, *numbers: int, at_s: float = 0.0) -> None:
        """Sessions of these numbers; overdue, unless a time is given."""
        for number in numbers:
            self._coming.put(Arrival(WORKLOAD.session(number), 0, at_s, at_s, at_s))
        settle()

    def sit(self, name: str, busy: Callable[[], object] = lambda: None) -> gevent.Greenlet:
        """A seat that plays one arrival after the other, each as long as `busy` takes."""

        def seat() -> None:
            while (given := self.loop.wait()) is not None:
                self.at_ns.append(time.time_ns())
                self.played.append((name, given.session.number))
                busy()
            self.played.append((name, None))

        greenlet = gevent.spawn(seat)
        settle()
        return greenlet


def settle() -> None:
    """Let everybody do what there is to do now."""
    for _ in range(5):
        gevent.sleep(0.001)


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    with gevent.Timeout(20):
        yield


def test_a_session_that_arrives_takes_the_seat_that_was_used_last() -> None:
    stage = Stage()
    for name in "abc":
        stage.sit(name)
    for number in range(3):
        stage.arrive(number)
    assert stage.played == [("c", 0), ("c", 1), ("c", 2)]


def test_nobody_plays_before_the_time() -> None:
    stage = Stage()
    for name in "abcdef":
        stage.sit(name, Event().wait)
    due_s = [time.time() + after for after in (0.02, 0.0203, 0.0251, 0.031, 0.0312, 0.05)]
    for number, at_s in enumerate(due_s):
        stage.arrive(number, at_s=at_s)
    while len(stage.played) < 6:
        settle()
    assert [number for _, number in stage.played] == [0, 1, 2, 3, 4, 5]
    assert all(at_ns >= round(at_s * 1e9) for at_ns, at_s in zip(stage.at_ns, due_s, strict=True))


def test_who_finds_no_idle_seat_is_refused_and_a_seat_that_is_free_again_gets_the_next() -> None:
    stage, answered = Stage(), Event()
    for name in "ab":
        stage.sit(name, answered.wait)
    stage.arrive(0, 1, 2)
    assert (stage.played, stage.refused) == ([("b", 0), ("a", 1)], [2])
    answered.set()
    settle()
    stage.arrive(3)
    assert [number for _, number in stage.played] == [0, 1, 3]
    assert stage.refused == [2]


def test_without_seats_all_are_refused_and_none_is_put_off() -> None:
    stage = Stage()
    stage.arrive(*range(50))
    while len(stage.refused) < 50:
        settle()
    stage.sit("late")
    assert stage.refused == list(range(50))
    assert stage.played == []


def test_a_seat_that_is_taken_away_leaves_what_it_was_just_given_to_another() -> None:
    stage = Stage()
    stage.sit("other")
    gone = stage.sit("gone")
    gone.kill(block=False)
    stage.arrive(7)
    assert gone.ready()
    assert (stage.played, stage.refused) == ([("other", 7)], [])


def test_a_seat_that_is_taken_away_while_it_is_idle_gets_nothing() -> None:
    stage = Stage()
    stage.sit("gone").kill()
    stage.arrive(0)
    assert (stage.played, stage.refused) == ([], [0])


def test_when_the_run_drains_idle_seats_go_and_nothing_arrives() -> None:
    stage = Stage()
    stage.sit("a")
    stage.arrive(0, at_s=time.time() + 0.03)
    stage.draining.set()
    stage.loop.close()
    settle()
    assert stage.played == [("a", None)]
    assert stage.loop.wait() is None
    gevent.sleep(0.04)
    assert stage.refused == []


def test_a_schedule_that_breaks_is_a_problem_and_not_the_end_of_the_load() -> None:
    def broken() -> Iterator[Arrival]:
        yield Arrival(WORKLOAD.session(0), 0, 0.0, 0.0, 0.0)
        raise OSError("no more files")

    refused: list[int] = []
    draining = Event()
    loop = OpenLoop(broken(), 0, lambda given: refused.append(given.session.number), draining)
    settle()
    assert refused == [0]
    assert loop.problem == "sessions stopped to arrive: OSError('no more files')"
    draining.set()
    loop.close()
    assert Stage().loop.problem == ""
