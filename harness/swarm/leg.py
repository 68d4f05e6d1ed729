"""The master's part of one leg of a run: the load on one target, or on several at the same time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import gevent
from locust.runners import STATE_MISSING, LocalRunner

from harness.record.manifest import Phase, StartUpCheck
from harness.swarm.cold_start import ColdStart, cold_start
from harness.swarm.first_requests import FirstRequests
from harness.swarm.plan import Drained, LanePlan, Plan
from harness.swarm.prepare import Lane, Preparation
from harness.swarm.server_metrics import ServerMetrics

logger = logging.getLogger(__name__)

PLAN, DRAIN = "kvswarm-plan", "kvswarm-drain"
"""The messages of a leg from master to worker."""
PART, DRAINED = "kvswarm-part", "kvswarm-drained"
"""Those from worker to master."""

ACK_GRACE_S = 20.0
"""How long after the drain timeout the master still waits for a worker's word."""


class LaneState:
    """One target through a leg."""

    def __init__(self, made: Preparation, lane: Lane, folder: str) -> None:
        self.lane = lane
        self.number = made.lanes.index(lane)
        """Within the run."""
        self.metrics = ServerMetrics(made.run_id, self.number, lane, folder)
        self.cold_start = ColdStart("", None, "")
        self.check: StartUpCheck | None = None

    def plan(self) -> LanePlan:
        lane = self.lane
        return LanePlan(
            number=self.number,
            target=lane.target.model_dump(mode="json"),
            engine=lane.identity.engine,
            model=lane.identity.model,
            lexicon=lane.lexicon.to_json(),
            nonce=self.cold_start.nonce,
            cache_salt=self.cold_start.cache_salt,
            slots=lane.slots,
        )


class Leg:
    """From the first request to a target to the last row."""

    def __init__(self, made: Preparation, number: int, folder: str, runner: Any) -> None:
        self.number = number
        self.started = False
        self.ended = False
        self.began_ns = 0
        """When the load began."""
        self.phases: list[Phase] = []
        self.request_parts: list[tuple[str, int]] = []
        self.problems: list[str] = []
        self.planned: dict[str, int] = {}
        """Locust's client id -> number of the worker."""
        self.drained: dict[str, Drained] = {}
        self.lanes = [LaneState(made, lane, folder) for lane in made.legs[number]]
        self._made = made
        self._folder = folder
        self._runner = runner
        self._lost: set[str] = set()
        self._watcher: gevent.Greenlet | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of its targets."""
        return tuple(state.lane.target.name for state in self.lanes)

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
            state.cold_start = cold_start(self._made.options.cold_start, self._made.nonce, state.lane.engine)
            state.metrics.settle("warmup_end")

    def _phase(self, name: str, began_ns: int, state: LaneState | None = None) -> None:
        targets = self.names if state is None else (state.lane.target.name,)
        self.phases.append(Phase(phase=name, targets=targets, start_ns=began_ns, end_ns=time.time_ns()))

    # --- the load ------------------------------------------------------------------------------

    def start(self, each_second: Callable[[], None]) -> int:
        """Send every ready worker its plan; returns how many there are. `each_second` is called until the drain."""
        self.started = True
        self.began_ns = time.time_ns()
        if isinstance(self._runner, LocalRunner):
            ids = [self._runner.client_id]
        else:
            ids = sorted((node.id for node in self._runner.clients.ready), key=self._runner.get_worker_index)
        self.planned = {client_id: number for number, client_id in enumerate(ids)}
        for client_id, number in self.planned.items():
            self._send(PLAN, self._plan(number, len(ids)).to_message(), client_id)
        for state in self.lanes:
            state.metrics.start()
        self._watcher = gevent.spawn(self._watch, each_second)
        return len(ids)

    def _plan(self, number: int, workers: int) -> Plan:
        made = self._made
        return Plan(
            run_id=made.run_id,
            leg=self.number,
            folder=self._folder,
            scenario=made.scenario.to_json(),
            lanes=[state.plan() for state in self.lanes],
            worker=number,
            workers=workers,
            drain_timeout_s=made.options.drain_timeout_s,
        )

    def _send(self, kind: str, data: dict[str, Any], client_id: str) -> None:
        self._runner.send_message(kind, data, client_id)

    def _watch(self, each_second: Callable[[], None]) -> None:
        """Notice workers that die or come late; write the metrics so far."""
        while True:
            gevent.sleep(1.0)
            self._notice_lost_workers()
            for state in self.lanes:
                state.metrics.flush_if_due()
            each_second()

    def _notice_lost_workers(self) -> None:
        if isinstance(self._runner, LocalRunner):
            return
        for client_id, number in self.planned.items():
            node = self._runner.clients.get(client_id)
            gone = node is None or node.state == STATE_MISSING
            if gone and client_id not in self.drained and client_id not in self._lost:
                self._lost.add(client_id)
                self.problems.append(f"worker {number} was lost during the run; its last rows are missing")
                logger.error("kvswarm: worker %d was lost; the run will be marked incomplete", number)
        late = {node.id for node in self._runner.clients.all} - set(self.planned)
        if late and not self.ended:
            problem = "a worker joined during the run and was given users without a part in it: less load than asked"
            if problem not in self.problems:
                self.problems.append(problem)

    def on_drained(self, client_id: str, drained: Drained) -> None:
        # In one process Locust names the sender "local".
        known = client_id if client_id in self.planned else next(iter(self.planned))
        self.drained[known] = drained

    # --- the end -------------------------------------------------------------------------------

    def end(self, stopped_by: str) -> None:
        """Drain the workers, take the last scrapes."""
        self.ended = True
        drain_ns = time.time_ns()
        self._collect_workers()
        if self._watcher is not None:
            self._watcher.kill()
        for state in self.lanes:
            state.metrics.finish()
            self.problems += state.metrics.problems
        if not self.started:
            return
        self.phases.append(Phase(phase="measure", targets=self.names, start_ns=self.began_ns, end_ns=drain_ns))
        self._phase("drain", drain_ns)
        if not self.planned:
            self.problems.append("no worker was connected when the run started")
        for word in self.words:
            if word.problem:
                self.problems.append(f"worker {word.worker}: {word.problem}")
            if word.reason == "signal" and stopped_by != "signal":
                self.problems.append(f"worker {word.worker} was stopped by a signal before the run ended")
            self.request_parts += [(str(name), int(rows)) for name, rows in word.parts]

    @property
    def words(self) -> list[Drained]:
        """What the workers said at their end, in their order."""
        return sorted(self.drained.values(), key=lambda word: word.worker)

    def _collect_workers(self) -> None:
        """Ask every worker for its rows and wait; a KeyboardInterrupt meanwhile cancels what is in flight."""
        for client_id in self.planned:
            if client_id not in self.drained:
                gevent.spawn(self._send, DRAIN, self._drain_message(cut_short=False), client_id)
        deadline = time.monotonic() + self._made.options.drain_timeout_s + ACK_GRACE_S
        while True:
            try:
                self._notice_lost_workers()
                missing = [i for i in self.planned if i not in self.drained and i not in self._lost]
                if not missing:
                    return
                if time.monotonic() > deadline:
                    break
                gevent.sleep(0.05)
            except KeyboardInterrupt:
                self.cut_short()
        for client_id in missing:
            self.problems.append(
                f"worker {self.planned[client_id]} did not answer at the end; its rows are not counted"
            )

    def cut_short(self) -> None:
        """Let the workers cancel what is in flight."""
        for client_id in self.planned:
            if client_id not in self.drained:
                self._send(DRAIN, self._drain_message(cut_short=True), client_id)

    def _drain_message(self, cut_short: bool) -> dict[str, Any]:
        return {"run_id": self._made.run_id, "leg": self.number, "cut_short": cut_short}
