"""Which worker plays which session when: the same whatever their number, and at first as if the load had gone on."""

from __future__ import annotations

import math
from itertools import takewhile
from pathlib import Path
from statistics import fmean

import pytest

from harness.workload.scenario import Replay
from harness.workload.schedule import Arrival, schedule, sessions_before
from harness.workload.workload import Workload
from tests.traces.written import agentic, call
from tests.workload.samples import multi_round

CHATS = Workload(multi_round(), "n")
SLOW = Workload(multi_round(rounds={"uniform": [1, 6]}, think_time_s={"uniform": [1.0, 9.0]}), "n")


def until(
    end_s: float, workload: Workload, arrivals: str, rate: str | None, stagger: bool = False, workers: int = 1
) -> list[Arrival]:
    """What all workers together play until then."""
    return [
        arrival
        for worker in range(workers)
        for arrival in takewhile(
            lambda arrival: arrival.arrives_s < end_s, schedule(workload, arrivals, rate, stagger, worker, workers)
        )
    ]


def asked(arrivals: list[Arrival]) -> list[tuple[int, int, float, tuple[int, ...]]]:
    """(session, turn, when due, content ids of the prompt) of each first request, in any order."""
    return sorted(
        (
            each.session.number,
            each.turn,
            each.due_s,
            tuple(
                segment.content_id
                for message in each.session.scripted_prompt(each.turn)
                for segment in message.segments
            ),
        )
        for each in arrivals
    )


@pytest.mark.parametrize(
    ("arrivals", "rate", "stagger"),
    [("poisson", "3", False), ("gamma:3", "5s:1,10s:1-5,5", False), ("constant", "2", False), ("poisson", "2", True)],
)
def test_any_number_of_workers_asks_the_same_at_the_same_times(arrivals: str, rate: str, stagger: bool) -> None:
    workload = SLOW if stagger else CHATS
    one, two, four = (asked(until(20, workload, arrivals, rate, stagger, workers)) for workers in (1, 2, 4))
    assert len(one) > 30
    assert one == two == four


def test_sessions_arrive_in_the_order_of_their_numbers() -> None:
    numbers = [arrival.session.number for arrival in until(20, CHATS, "poisson", "3")]
    assert numbers == list(range(len(numbers)))
    two = [arrival.session.number for arrival in until(20, CHATS, "poisson", "3", workers=2)]
    assert two == sorted(two, key=lambda number: (number % 2, number))


def replay(tmp_path: Path, **keys: object) -> Workload:
    trace = agentic(tmp_path / "t.json", [call(0, 64, [1]), call(4, 64, [2])])
    return Workload(Replay.model_validate({"name": "r", "kind": "replay", "trace": str(trace), **keys}), "n")


def test_a_trace_gives_the_times_itself(tmp_path: Path) -> None:
    workload = replay(tmp_path, times="scaled", speed=2)
    first = list(takewhile(lambda arrival: arrival.session.number < 4, schedule(workload, "trace", None, False, 0, 1)))
    assert [arrival.due_s for arrival in first] == [workload.session(number).starts_s for number in range(len(first))]
    assert {arrival.origin_s for arrival in first} == {0.0}


def test_a_replay_at_a_rate_keeps_the_distances_within_each_session(tmp_path: Path) -> None:
    for arrival in until(10, replay(tmp_path), "poisson", "1"):
        assert arrival.session.starts_s is not None
        assert arrival.origin_s + arrival.session.starts_s == pytest.approx(arrival.due_s)


def test_a_load_that_is_to_have_gone_on_begins_with_sessions_under_way() -> None:
    """By Little's law, rate x mean length of a session by its pauses, whose ages are spread as the pauses have it."""
    rate, length_s = 50.0, [sum(turn.think_time_s for turn in SLOW.session(n).turns) for n in range(500)]
    under_way = until(0, SLOW, "poisson", f"{rate:g}", stagger=True)
    expected = rate * fmean(length_s)
    assert len(under_way) == pytest.approx(expected, abs=5 * math.sqrt(expected))
    # Waiting for the rest of a pause that a random instant fell into: E[x²] / 2 E[x], of pauses from 1 to 9 s.
    waits_s = [arrival.due_s for arrival in under_way]
    assert fmean(waits_s) == pytest.approx((25 + 64 / 12) / 10, abs=4 * 2.0 / math.sqrt(len(waits_s)))
    # Each is where its pauses have brought it since it arrived.
    for arrival in under_way:
        pauses_s = [turn.think_time_s for turn in arrival.session.turns]
        assert sum(pauses_s[: arrival.turn + 1]) + arrival.arrives_s == pytest.approx(arrival.due_s)
        assert sum(pauses_s[: arrival.turn]) < -arrival.arrives_s
    assert len(under_way) <= sessions_before(SLOW, f"{rate:g}") == math.ceil(5 * 9 * rate)


def test_the_rate_has_no_jump_where_a_load_that_went_on_begins() -> None:
    """All arrivals in 20 s at 40 a second, beside those that were under way before."""
    fresh = [arrival for arrival in until(20, SLOW, "poisson", "40", stagger=True) if arrival.arrives_s >= 0]
    assert len(fresh) == pytest.approx(800, abs=4 * math.sqrt(800))
    assert {arrival.turn for arrival in fresh} == {0}


def test_sessions_without_pauses_are_never_under_way() -> None:
    workload = Workload(multi_round(think_time_s=0.0), "n")
    assert sessions_before(workload, "200") == 0
    assert until(5, workload, "constant", "2", stagger=True) == until(5, workload, "constant", "2")
