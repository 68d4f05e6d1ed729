"""The workers of a leg as the master sees them: lost, late, out of reach, and by another clock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.swarm import presence as module
from harness.swarm.partners import Partners
from harness.swarm.presence import PATIENCE_S, Presence
from harness.swarm.roll_call import RollCall
from tests.swarm.fake_workers import OWN, Runner, Worker
from tests.workload.samples import agent_loop

HOUR_NS = 3_600 * 10**9


class Clock:
    """The monotonic clock that the looks go by."""

    now_s = 1_000.0

    def monotonic(self) -> float:
        self.now_s += 1.0
        return self.now_s


@pytest.fixture(autouse=True)
def hung_up(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The workers whose connection is closed; looks are a second apart."""
    closed: set[str] = set()
    monkeypatch.setattr(Presence, "_has_hung_up", lambda _, client_id: client_id in closed)
    monkeypatch.setattr(module, "time", Clock())
    return closed


def called(**workers: Worker) -> tuple[Runner, Partners]:
    runner = Runner(**workers)
    partners = Partners(runner, RollCall(runner))
    partners.call(agent_loop())
    return runner, partners


def look(partners: Partners, times: int = 1) -> list[str]:
    for _ in range(times):
        partners.look(done=())
    return partners.problems


def test_those_that_take_part_are_numbered_without_gaps() -> None:
    _, partners = called(a=Worker(), other=Worker(replace(OWN, source="0123456789ab")), b=Worker())
    assert partners.planned == {"a": 0, "b": 1}
    assert "worker other on" in partners.notes[0]


def test_one_that_leaves_is_lost() -> None:
    runner, partners = called(a=Worker(), b=Worker())
    del runner.clients["b"]
    assert look(partners, 2) == ["worker 1 was lost during the run (it has left); its last rows are missing"]
    assert list(partners.lost) == ["b"]


def test_one_that_died_is_lost_before_the_patience_is_over(hung_up: set[str]) -> None:
    runner, partners = called(a=Worker(), b=Worker())
    hung_up.add("b")
    runner.clients["b"].heartbeat = PATIENCE_S - 2
    (problem,) = look(partners, 4)
    assert "worker 1 was lost during the run (its connection was closed" in problem
    assert runner.clients["b"].heartbeat < 0  # so that Locust gives it up as well


def test_a_connection_that_is_made_anew_is_no_loss(hung_up: set[str]) -> None:
    runner, partners = called(a=Worker())
    for _ in range(5):
        hung_up.add("a")
        runner.clients["a"].heartbeat = PATIENCE_S - 3
        look(partners, 2)
        hung_up.clear()
        look(partners)
    assert partners.problems == []


def test_one_that_is_silent_for_a_while_is_waited_for_and_its_silence_told() -> None:
    runner, partners = called(a=Worker())
    for silent_s in range(5, 14):
        runner.clients["a"].heartbeat = PATIENCE_S - silent_s
        assert look(partners) == []
    runner.clients["a"].heartbeat = PATIENCE_S
    assert look(partners) == []
    partners.end(drained=["a"])
    assert partners.notes == ["worker 0 was out of the master's reach for about 14 s; it went on meanwhile"]


def test_one_that_was_given_up_and_hands_its_rows_over_after_all_is_no_loss() -> None:
    runner, partners = called(a=Worker())
    runner.clients["a"].state = "missing"
    assert "silent for 30 s" in look(partners)[0]
    partners.on_drained("a")
    assert (partners.problems, list(partners.lost)) == ([], [])


def test_one_that_comes_late_is_told_once() -> None:
    runner, partners = called(a=Worker())
    late = runner.clients["late"] = Worker()
    late.id = "late"
    partners.notice_late_ones()
    partners.notice_late_ones()
    assert partners.notes == ["worker late came during the run: it has no part in it, and waits for the next"]


def test_a_clock_that_is_ahead_is_measured_and_told() -> None:
    _, partners = called(a=Worker(), ahead=Worker(ahead_ns=HOUR_NS))
    partners.end(drained=["a", "ahead"])
    assert partners.clock_ahead_ns("a") == 0
    assert abs(partners.clock_ahead_ns("ahead") - HOUR_NS) <= partners.clocks_before["ahead"].error_ns + 1
    (note,) = partners.notes
    assert note.startswith("the clock of worker 1 was 36000")
    assert note.endswith("the times in its rows are corrected by that")


def test_a_clock_that_moved_during_the_run_is_told() -> None:
    runner, partners = called(a=Worker())
    runner.clients["a"].ahead_ns = -HOUR_NS
    partners.end(drained=["a"])
    (note,) = partners.notes
    assert note.startswith("the clock of worker 0 moved by at least -359999")


def test_a_clock_that_could_not_be_read_is_told() -> None:
    _, partners = called(a=Worker())
    partners.clocks_before = {}
    partners.end(drained=["a"])
    assert partners.notes == ["the clock of worker 0 could not be compared with the master's before the load"]
