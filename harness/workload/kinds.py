"""How sessions of each kind of scenario are made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.workload import agent_loop, long_document, multi_round
from harness.workload.replay import ReplayedSessions
from harness.workload.scenario import AgentLoop, LongDocument, MultiRound, Replay, Scenario
from harness.workload.session import Session


def makers(scenario: Scenario) -> tuple[Callable[[str, int], Session], Callable[[], Session]]:
    """Two functions: one makes a session by seed and number, one the longest; without sharing tree and faults.

    Raises InputError if the trace of a replay cannot be read or played.
    """
    match scenario:
        case AgentLoop():
            return partial(agent_loop.session, scenario), partial(agent_loop.longest_session, scenario)
        case LongDocument():
            return partial(long_document.session, scenario), partial(long_document.longest_session, scenario)
        case MultiRound():
            return partial(multi_round.session, scenario), partial(multi_round.longest_session, scenario)
        case Replay():
            replayed = ReplayedSessions(scenario)
            return replayed.session, replayed.longest_session
    raise TypeError(f"{type(scenario).__name__} is not a kind of scenario")
