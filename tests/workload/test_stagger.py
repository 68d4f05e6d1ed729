"""Where a user's first session is when a closed loop begins in its midst."""

from __future__ import annotations

import math
from collections import Counter
from statistics import fmean

import pytest

from harness.workload.session import Session
from harness.workload.stagger import Progress, planned_s, progress_after, progress_at_random
from harness.workload.workload import Workload
from tests.workload.samples import agent_loop, multi_round

CHATS = Workload(multi_round(rounds=3, think_time_s=2.0), "n")  # turns are due after 0, 2 and 4 s


@pytest.mark.parametrize(
    ("passed_s", "turn", "left_s"), [(0.0, 0, 0.0), (0.5, 1, 1.5), (2.0, 1, 0.0), (2.5, 2, 1.5), (4.0, 2, 0.0)]
)
def test_after_a_while_a_session_waits_for_its_next_turn(passed_s: float, turn: int, left_s: float) -> None:
    progress = progress_after(CHATS.session(0), passed_s)
    assert progress is not None
    assert (progress.turn, progress.left_s) == (turn, left_s)


def test_a_session_whose_turns_were_all_due_is_over() -> None:
    assert progress_after(CHATS.session(0), 4.1) is None
    assert planned_s(CHATS.session(0)) == 4.0


def under_way(workload: Workload, sessions: int) -> list[tuple[Session, Progress]]:
    """Those of the first `sessions` that a user is in at a random instant."""
    longest = workload.longest_session
    tried = ((workload.session(n), progress_at_random(workload.session(n), longest, 1)) for n in range(sessions))
    return [(session, progress) for session, progress in tried if progress is not None]


def test_without_pauses_a_user_is_at_any_turn_of_long_sessions_rather_than_of_short_ones() -> None:
    found = under_way(Workload(agent_loop(steps={"uniform": [1, 4]}), "n"), 1600)
    at = Counter((len(session.turns), progress.turn) for session, progress in found)
    # All ten places, (1, 0) to (4, 3), are as likely: of sessions of four turns four times as many are taken.
    assert set(at) == {(turns, turn) for turns in range(1, 5) for turn in range(turns)}
    for count in at.values():
        assert count == pytest.approx(100, abs=4 * math.sqrt(100))
    assert {progress.left_s for _, progress in found} == {0.0}


def test_with_pauses_a_user_is_at_any_moment_of_them() -> None:
    workload = Workload(multi_round(rounds={"uniform": [2, 6]}, think_time_s={"uniform": [1.0, 9.0]}), "n")
    lengths_s = [planned_s(workload.session(n)) for n in range(1200)]
    weighed_s = sum(length * length for length in lengths_s) / sum(lengths_s)
    found = under_way(workload, 1200)
    assert fmean(planned_s(session) for session, _ in found) == pytest.approx(weighed_s, rel=0.1)
    passed = [
        (sum(turn.think_time_s for turn in session.turns[: progress.turn + 1]) - progress.left_s) / planned_s(session)
        for session, progress in found
    ]
    assert fmean(passed) == pytest.approx(0.5, abs=4 * math.sqrt(1 / 12 / len(passed)))
