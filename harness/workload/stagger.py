"""Sessions that are under way when a load begins, as if it had gone on before: how far each has come.

Only pauses are planned. How long answers take is not known beforehand, so it has no part in a session's age; a session
without pauses is somewhere among its turns.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.workload.distribution import Draws
from harness.workload.session import Session


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a session is when the load begins."""

    turn: int
    """The first that is still to be sent; those before it are in its prompt, with their scripted replies."""
    left_s: float
    """What is left of the pause before it."""


def planned_s(session: Session) -> float:
    """How long a session lasts by its pauses alone."""
    return sum(turn.think_time_s for turn in session.turns)


def progress_after(session: Session, passed_s: float) -> Progress | None:
    """Of a session that began so long ago; None: its last turn was due before."""
    due_s = 0.0
    for turn in session.turns:
        due_s += turn.think_time_s
        if due_s >= passed_s:
            return Progress(turn.index, due_s - passed_s)
    return None


def progress_at_random(session: Session, longest: Session, seed: int) -> Progress | None:
    """Of the session that a user is in at a random instant, if it is this one.

    A random instant falls into a session with a chance that grows with its length: `session` is taken with the chance
    length / length of `longest`, and the instant lies anywhere in it. None: it is not taken, try the next one.
    """
    random = Draws(seed, "session", session.number).stream("stagger")
    longest_s = planned_s(longest)
    if longest_s > 0:
        instant_s = random.random() * longest_s
        return progress_after(session, instant_s) if instant_s < planned_s(session) else None
    place = int(random.random() * len(longest.turns))
    return Progress(place, 0.0) if place < len(session.turns) else None
