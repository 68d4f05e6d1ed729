"""The master's part of one leg of a run: the load on one target, or on several at the same time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import gevent

from harness.record.manifest import Phase
from harness.swarm.cold_start import cold_start
from harness.swarm.first_requests import MASTER, FirstRequests
from harness.swarm.health import HealthWatch
from harness.swarm.lane_state import LaneState
from harness.swarm.partners import Partners
from harness.swarm.plan import Drained, LoadPlan, Plan
from harness.swarm.prepare import Preparation
from harness.swarm.ramp import RAMP, Ramp
from harness.swarm.roll_call import RollCall

logger = logging.getLogger(__name__)

PLAN, DRAIN = "kvswarm-plan", "kvswarm-drain"
"""The messages of a leg from master to worker."""
PART, DRAINED = "kvswarm-part", "kvswarm-drained"
"""Those from worker to master."""
TAKEN = "kvswarm-taken"
"""The master's acknowledgement of a PART."""

START_AFTER_S = 1.0
"""How long after the plan an open loop begins, so that every worker has it, and all its users."""
SEAT_S = 0.001
"""So much longer for each seat of a worker: a busy machine takes that long to make one."""
ACK_GRACE_S = 20.0
"""How long after the drain timeout, or after the last part that came, the master still waits for a worker's word."""
ASK_AGAIN_S = 5.0
"""A request to drain, or its answer, may be lost with a connection."""


class Leg:
    """From the first request to a target to the last row."""

    def __init__(
        self, made: Preparation, number: int, folder: str, runner: Any, roll_call: RollCall | None = None
    ) -> None:
        """`roll_call`: of the workers; None where one process does everything."""
        self.number = number
        self.started = False
        self.ended = False
        self.began_ns = 0
        """When the load began; in an open loop, that is a moment after the users did."""
        self.planned_ns = 0
        """When the workers got their plan."""
        self.ramp: Ramp | None = None
        """None: before the load."""
        self.phases: list[Phase] = []
        self.request_parts: list[tuple[str, int]] = []
        self.health_parts: list[tuple[str, int]] = []
        self._problems: list[str] = []
        self._notes: list[str] = []
        self.planned: Mapping[str, int] = {}
        """Locust's client id -> number of the worker."""
        self.partners = None if roll_call is None else Partners(runner, roll_call)
        """None: one process does everything."""
        self.drained: dict[str, Drained] = {}
        self.first_news: list[dict[str, Any]] = []
        """What `RequestNews.take` gave of the master's own requests, one for each target."""
        self.lanes = [LaneState(made, lane, folder) for lane in made.legs[number]]
        self._made = made
        self._folder = folder
        self._runner = runner
        self._heard_s = 0.0
        self._watcher: gevent.Greenlet | None = None
        self._health: HealthWatch | None = None
        """Of the master, where it is a process of its own."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its targets."""
        return tuple(state.lane.target.name for state in self.lanes)

    @property
    def problems(self) -> list[str]:
        """Sentences: why its results may not mean what they seem to."""
        return self._problems + ([] if self.partners is None else self.partners.problems)

    @property
    def notes(self) -> list[str]:
        """Sentences: what a reader of its results has to know."""
        return self._notes + ([] if self.partners is None else self.partners.notes)

    # --- before the load -----------------------------------------------------------------------

    def prepare(self) -> None:
        """Start-up check, warm-up, cold start. Raises InputError if a target does not answer as it should."""
        for state in self.lanes:
            state.metrics.look_before()
            requests = FirstRequests(self._made, state.lane, state.number, self._folder)
            try:
                began_ns = time.time_ns()
                state.check = requests.check(state.metrics)
                self._phase("check", began_ns, state)
                began_ns = time.time_ns()
                requests.warm_up()
                self._phase("warmup", began_ns, state)
            finally:
                self.request_parts += requests.finish()
            self.first_news.append(requests.news.take(time.time_ns()))
            state.cold_start = cold_start(self._made.options.cold_start, self._made.nonce, state.lane.engine)
            state.metrics.settle("warmup_end")

    def _phase(self, name: str, began_ns: int, state: LaneState | None = None) -> None:
        targets = self.names if state is None else (state.lane.target.name,)
        self.phases.append(Phase(phase=name, targets=targets, start_ns=began_ns, end_ns=time.time_ns()))

    # --- the load ------------------------------------------------------------------------------

    def start(self, each_second: Callable[[], None], tells_requests: bool = False) -> int:
        """Send every ready worker its plan; returns how many there are. `each_second` is called until the drain."""
        self.started = True
        if self.partners is None:
            self.planned = {self._runner.client_id: 0}
        else:
            self.planned = self.partners.call(self._made.scenario)
        self.planned_ns = time.time_ns()
        self.began_ns = self.planned_ns + (self._start_after_ns() if self._made.options.load == "open" else 0)
        load = self._load()
        self.ramp = Ramp(load)
        for client_id, number in self.planned.items():
            ahead_ns = 0 if self.partners is None else self.partners.clock_ahead_ns(client_id)
            plan = replace(self._plan(number, load, ahead_ns), tells_requests=tells_requests)
            self._send(PLAN, plan.to_message(), client_id)
        for state in self.lanes:
            state.metrics.start()
        if self.partners is not None:
            self._health = HealthWatch(self._made.run_id, self.number, MASTER, self._folder)
        self._watcher = gevent.spawn(self._watch, each_second)
        return len(self.planned)

    def _start_after_ns(self) -> int:
        return round((START_AFTER_S + SEAT_S * self._made.users / max(1, len(self.planned))) * 1e9)

    def _plan(self, number: int, load: LoadPlan, clock_ahead_ns: int) -> Plan:
        made = self._made
        return Plan(
            run_id=made.run_id,
            leg=self.number,
            folder=self._folder,
            scenario=made.scenario.to_json(),
            lanes=[state.plan() for state in self.lanes],
            worker=number,
            workers=len(self.planned),
            drain_timeout_s=made.options.drain_timeout_s,
            load=replace(load, start_ns=load.start_ns + clock_ahead_ns),
            clock_ahead_ns=clock_ahead_ns,
        )

    def _load(self) -> LoadPlan:
        options = self._made.options
        return LoadPlan(
            start_ns=self.began_ns,
            rate=options.rate,
            arrivals=options.arrivals,
            stagger=options.stagger,
            ramps=self._made.ramps,
            warm_up_s=options.warm_up_s,
        )

    @property
    def phase(self) -> str:
        """What goes on: ramp, measure or drain; empty before the load."""
        if self.ended or self.ramp is None:
            return "drain" if self.ended else ""
        return "measure" if self.ramp.is_over(time.time_ns()) else RAMP

    def _send(self, kind: str, data: dict[str, Any], client_id: str) -> None:
        self._runner.send_message(kind, data, client_id)

    def _watch(self, each_second: Callable[[], None]) -> None:
        """Look for workers that die or come late; write the metrics so far."""
        while True:
            gevent.sleep(1.0)
            self._look_for_workers()
            for state in self.lanes:
                state.metrics.flush_if_due()
            each_second()

    def _look_for_workers(self) -> None:
        if self.partners is not None:
            self.partners.look(done=self.drained)
            if not self.ended:
                self.partners.notice_late_ones()

    def on_drained(self, client_id: str, drained: Drained) -> None:
        # In one process Locust names the sender "local".
        known = client_id if client_id in self.planned else next(iter(self.planned))
        self.drained[known] = drained
        if self.partners is not None:
            self.partners.on_drained(known)

    def heard(self) -> None:
        """Part of a worker's rows came: more may follow."""
        self._heard_s = max(self._heard_s, time.monotonic())

    # --- the end -------------------------------------------------------------------------------

    def end(self, stopped_by: str) -> None:
        """Drain the workers, take the last scrapes."""
        self.ended = True
        drain_ns = time.time_ns()
        self._collect_workers()
        if self.partners is not None:
            self.partners.end(self.drained)
        if self._watcher is not None:
            self._watcher.kill()
        self._end_health()
        for state in self.lanes:
            state.metrics.finish()
            self._problems += state.metrics.problems
        if not self.started:
            return
        self._phases_of_load(drain_ns)
        self._phase("drain", drain_ns)
        if not self.planned:
            self._problems.append("no worker took part: none was connected when the run started, or all were refused")
        for word in self.words:
            if word.problem:
                self._problems.append(f"worker {word.worker}: {word.problem}")
            if word.reason == "signal" and stopped_by != "signal":
                self._problems.append(f"worker {word.worker} was stopped by a signal before the run ended")
            self.request_parts += [(str(name), int(rows)) for name, rows in word.parts]
            self.health_parts += [(str(name), int(rows)) for name, rows in word.health_parts]

    def _phases_of_load(self, drain_ns: int) -> None:
        assert self.ramp is not None
        measured_from_ns = drain_ns if self.ramp.ends_ns is None else min(self.ramp.ends_ns, drain_ns)
        if measured_from_ns > self.began_ns:
            self.phases.append(Phase(phase=RAMP, targets=self.names, start_ns=self.began_ns, end_ns=measured_from_ns))
        if measured_from_ns < drain_ns:
            self.phases.append(Phase(phase="measure", targets=self.names, start_ns=measured_from_ns, end_ns=drain_ns))
        else:
            self._notes.append("nothing was measured: the load ended before all users were there, or in its warm-up")

    def _end_health(self) -> None:
        if self._health is None:
            return
        self._health.close()
        try:
            self._health.flush()
        except OSError as error:
            self._problems.append(f"the health of the master could not be written: {error}")
        self.health_parts += self._health.parts

    @property
    def words(self) -> list[Drained]:
        """What the workers said at their end, in their order."""
        return sorted(self.drained.values(), key=lambda word: word.worker)

    def _collect_workers(self) -> None:
        """Ask every worker for its rows and wait; a KeyboardInterrupt meanwhile cancels what is in flight."""
        self._heard_s = time.monotonic() + self._made.options.drain_timeout_s
        ask_s = 0.0
        while True:
            try:
                self._look_for_workers()
                lost = () if self.partners is None else self.partners.lost
                missing = [i for i in self.planned if i not in self.drained and i not in lost]
                if not missing:
                    return
                if time.monotonic() > self._heard_s + ACK_GRACE_S:
                    break
                if time.monotonic() >= ask_s:
                    ask_s = time.monotonic() + ASK_AGAIN_S
                    for client_id in missing:
                        gevent.spawn(self._send, DRAIN, self._drain_message(cut_short=False), client_id)
                gevent.sleep(0.05)
            except KeyboardInterrupt:
                self.cut_short()
        for client_id in missing:
            self._problems.append(
                f"worker {self.planned[client_id]} did not answer at the end; its rows are not counted"
            )

    def cut_short(self) -> None:
        """Let the workers cancel what is in flight."""
        for client_id in self.planned:
            if client_id not in self.drained:
                self._send(DRAIN, self._drain_message(cut_short=True), client_id)

    def _drain_message(self, cut_short: bool) -> dict[str, Any]:
        return {"run_id": self._made.run_id, "leg": self.number, "cut_short": cut_short}
