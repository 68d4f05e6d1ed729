"""The sessions of an open loop in the order in which they arrive, as one of several workers has them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from harness.workload.arrivals import arrival_times_s, parse_arrivals
from harness.workload.rate import Rate, Stage, parse_rate
from harness.workload.session import Session
from harness.workload.stagger import planned_s, progress_after
from harness.workload.workload import Workload


class Arrival(NamedTuple):
    """A session and its time, in seconds from the load's start."""

    session: Session
    turn: int
    """The first that is sent; those before it were due before the load began."""
    arrives_s: float
    """Below 0: it is under way when the load begins."""
    due_s: float
    """When that turn is due; the later ones follow from the answers."""
    origin_s: float
    """What the session's own times (`Turn.due_s`) count from."""


def schedule(
    workload: Workload, arrivals: str, rate: str | None, stagger: bool, worker: int, workers: int
) -> Iterator[Arrival]:
    """Sessions worker, worker + workers, ... of those that arrive, each at the same time whatever `workers` is.

    `rate` None and `arrivals` trace: at the times of the trace. With `stagger` those come first that began before the
    load does, as many as the rate at its start had brought, and are under way then.
    """
    if rate is None:
        yield from _traced(workload, worker, workers)
        return
    given = parse_rate(rate)
    before_s = _before_s(workload) if stagger and given.stages[0].first else 0.0
    seed = workload.scenario.seed
    for number, time_s in enumerate(arrival_times_s(parse_arrivals(arrivals), _preceded(given, before_s), seed)):
        if number % workers != worker:
            continue
        session, arrives_s = workload.session(number), time_s - before_s
        if arrives_s >= 0:
            yield Arrival(session, 0, arrives_s, arrives_s, arrives_s - (session.starts_s or 0.0))
        elif (progress := progress_after(session, -arrives_s)) is not None:
            yield Arrival(session, progress.turn, arrives_s, progress.left_s, arrives_s)


def sessions_before(workload: Workload, rate: str) -> int:
    """How many sessions `schedule` looks at, with `stagger`, that began before the load does."""
    return math.ceil(_before_s(workload) * parse_rate(rate).stages[0].first)


def _traced(workload: Workload, worker: int, workers: int) -> Iterator[Arrival]:
    for number in count(worker, workers):
        session = workload.session(number)
        assert session.starts_s is not None
        yield Arrival(session, 0, session.starts_s, session.starts_s, 0.0)


def _before_s(workload: Workload) -> float:
    """No session that began longer ago is still under way by its pauses."""
    return planned_s(workload.longest_session)


def _preceded(rate: Rate, before_s: float) -> Rate:
    """`rate`, after `before_s` of what it begins with."""
    first = rate.stages[0].first
    return rate if not before_s else Rate((Stage(before_s, first, first), *rate.stages), rate.text)
