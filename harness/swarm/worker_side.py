"""What a process that has users does at the master's messages, and when it ends."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from locust.runners import LocalRunner, WorkerRunner

from harness.errors import IncompleteRun, InputError, KvswarmError
from harness.swarm import ramp
from harness.swarm.handshake import (
    ANSWER,
    ASK,
    CLOCK,
    FILES,
    REFUSED,
    TIME,
    files_message,
    own_credentials,
    time_message,
)
from harness.swarm.leg import DRAIN, DRAINED, PART, PLAN, TAKEN
from harness.swarm.plan import Drained, Plan
from harness.swarm.user import SessionUser
from harness.swarm.worker import WorkerRun

logger = logging.getLogger(__name__)

LIVE = "kvswarm"
"""Key, in a worker's regular report to the master, of the figures that the page shows."""


class WorkerSide:
    """Listens for plan and drain; one instance in each process that has users."""

    def __init__(self, environment: Any, runner: Any) -> None:
        self._environment = environment
        self._runner = runner
        runner.register_message(PLAN, self._on_plan)
        runner.register_message(DRAIN, self._on_drain, concurrent=True)
        if isinstance(runner, WorkerRunner):
            runner.register_message(ASK, self._on_ask)
            runner.register_message(CLOCK, self._on_clock)
            runner.register_message(REFUSED, self._on_refused)
            runner.register_message(TAKEN, self._on_taken)
        environment.events.report_to_master.add_listener(self._on_report)
        ramp.attach(environment, runner, self._ramp)
        # Registered here, after Locust's own, so that it runs before them: `quitting` goes through its list backwards.
        environment.events.quitting.add_listener(self._on_quitting)

    def _on_plan(self, msg: Any, **_: Any) -> None:
        plan = Plan.from_message(msg.data)
        try:
            SessionUser.run_of_this_worker = WorkerRun(
                plan, self._environment.events.request.fire, partial(self._runner.send_message, PART)
            )
        except (KvswarmError, OSError) as error:
            SessionUser.run_of_this_worker = None
            logger.error("kvswarm: this worker has no part in the run: %s", error)
            nothing = Drained(plan.run_id, plan.leg, plan.worker, "failed", [], 0, 0, 0, 0.0, 0.0, str(error))
            self._runner.send_message(DRAINED, nothing.to_message())

    def _on_ask(self, msg: Any, **_: Any) -> None:
        self._runner.send_message(ANSWER, {"number": msg.data["number"], **own_credentials().to_message()})
        self._runner.send_message(FILES, files_message(msg.data))

    def _on_clock(self, msg: Any, **_: Any) -> None:
        self._runner.send_message(TIME, time_message(msg.data))

    def _on_refused(self, msg: Any, **_: Any) -> None:
        """Locust's own message to quit comes next."""
        logger.error("kvswarm: the master refused this worker: %s", msg.data["reason"])
        self._environment.process_exit_code = InputError.exit_code

    def _on_taken(self, msg: Any, **_: Any) -> None:
        run = SessionUser.run_of_this_worker
        if run is not None and run.delivery is not None and run.plan.run_id == msg.data["run_id"]:
            run.delivery.acknowledge(msg.data["name"], msg.data["number"])

    def _ramp(self) -> ramp.Ramp | None:
        run = SessionUser.run_of_this_worker
        return None if run is None else run.ramp

    def _on_drain(self, msg: Any, **_: Any) -> None:
        run = SessionUser.run_of_this_worker
        if run is None or (run.plan.run_id, run.plan.leg) != (msg.data["run_id"], msg.data["leg"]):
            return
        if msg.data["cut_short"]:
            run.cut_drain_short()
        else:
            self._runner.send_message(DRAINED, run.drain("drain").to_message())

    def _on_report(self, data: dict[str, Any], **_: Any) -> None:
        """Every few seconds in a worker process: add figures for the page to Locust's own."""
        run = SessionUser.run_of_this_worker
        if run is not None:
            data[LIVE] = run.report()

    def _on_quitting(self, **_: Any) -> None:
        """This process is about to end, perhaps told so by a signal: bring the rows home first.

        The master may have asked for them just before, and that drain go on still; a last word said twice does no harm.
        """
        run = SessionUser.run_of_this_worker
        if run is None or isinstance(self._runner, LocalRunner):
            return
        if run.delivery is not None and not len(self._runner.greenlet):  # Locust has stopped to listen to the master
            run.delivery.abandon()
        drained = run.drain("signal")
        if drained.problem:
            self._environment.process_exit_code = IncompleteRun.exit_code
        self._runner.send_message(DRAINED, drained.to_message())
