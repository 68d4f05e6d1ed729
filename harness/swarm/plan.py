"""The small message by which the master tells each worker what to send; everything else follows from it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

FLUSH_EVERY_S = 15.0
"""A process that is killed loses at most the rows of this long."""


@dataclass(frozen=True, slots=True)
class LanePlan:
    """What a worker has to know to load one target."""

    number: int
    """Of the target within the run, from 0."""
    target: dict[str, Any]
    """The target without secrets; a worker reads the API key from its own environment."""
    engine: str
    model: str
    lexicon: dict[str, Any]
    nonce: str
    """Mixed into every content id, so that no earlier run sent these texts; empty: texts of the seed alone."""
    cache_salt: str | None
    """Sent with every request, so that only this run's requests share a cache."""
    slots: int | None
    """Each user keeps to one of this many slots of the server; None: the server chooses."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """When sessions begin, and from when on their requests are measured."""

    start_ns: int
    """When the load begins: now in a closed loop; a little later in an open one, so that all workers are ready."""
    rate: str | None = None
    """As `harness.workload.rate` reads it; None: a closed loop, or the times of a trace."""
    arrivals: str | None = None
    """As `harness.workload.arrivals` reads it; None: a closed loop, in which a free user begins the next session."""
    stagger: bool = False
    """The first sessions are under way when the load begins."""
    ramps: bool = False
    """Users are started little by little, so the load is not what was asked for until Locust has started all."""
    warm_up_s: float = 0.0
    """Requests of the first so many seconds are not measured."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One leg of a run: plain values only, as Locust packs it with msgpack."""

    run_id: str
    leg: int
    """Number of the leg within the run, from 0."""
    folder: str
    """The run's directory, as a path or a pyarrow.fs URL."""
    scenario: str
    """The scenario as JSON."""
    lanes: list[LanePlan]
    """The targets that are loaded at the same time; users are dealt out to them in turn."""
    worker: int
    """This worker's number, 0 to workers - 1: on each target it plays sessions worker, worker + workers, ... of the
    workload. Sub-agents belong to the session that starts them."""
    workers: int
    drain_timeout_s: float
    load: LoadPlan
    clock_ahead_ns: int = 0
    """This worker's clock minus the master's, as far as it is known to differ. `load.start_ns` is by this worker's
    clock; the times in its rows are by the master's."""
    tells_requests: bool = False
    """Reports say what was sent, for somebody looks on and wants to know what hits to expect."""

    def to_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Plan:
        lanes = [LanePlan(**lane) for lane in message["lanes"]]
        return cls(**{**message, "lanes": lanes, "load": LoadPlan(**message["load"])})


@dataclass(frozen=True, slots=True)
class Drained:
    """What a worker says when its last request of a leg has ended and its last part is written."""

    run_id: str
    leg: int
    worker: int
    reason: str
    """drain (the master asked) or signal (the worker itself was told to stop)."""
    parts: list[list[Any]]
    """[file name, rows] of each part written."""
    rows: int
    failed: int
    cancelled: int
    cpu_s: float
    """CPU time of the worker's process from plan to drain."""
    wall_s: float
    problem: str
    """Why rows could not be written; empty if all were."""
    figures: list[dict[str, Any]] = field(default_factory=list)
    """What `LiveFigures.take` gave: those that no report brought yet."""
    health_parts: list[list[Any]] = field(default_factory=list)
    """[file name, rows] of each part of `harness_health` written."""

    def to_message(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Drained:
        return cls(**message)
