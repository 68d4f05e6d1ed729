"""Hooks kvswarm into Locust: options, the page's Start button, the messages of a run, signals."""

from __future__ import annotations

import itertools
import logging
import signal
import sys
from argparse import Namespace
from functools import partial
from typing import Any, NoReturn

import gevent
import locust
from locust.runners import STATE_RUNNING, STATE_SPAWNING, STATE_STOPPED, LocalRunner, WorkerRunner

from harness.errors import IncompleteRun, InputError, KvswarmError
from harness.swarm import webpage
from harness.swarm.conductor import Conductor
from harness.swarm.leg import DRAIN, DRAINED, PART, PLAN, Leg
from harness.swarm.options import RunOptions, add_arguments
from harness.swarm.plan import Drained, Plan
from harness.swarm.ports import check_when_parsed
from harness.swarm.prepare import prepare
from harness.swarm.user import SessionUser
from harness.swarm.worker import WorkerRun

logger = logging.getLogger(__name__)

LIVE = "kvswarm"
"""Key, in a worker's regular report to the master, of the figures that the page shows."""

_installed = False


def install(scenario: str) -> None:
    """Call once from a locustfile; `scenario` is the default of --scenario. Later calls change nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    events: Any = locust.events
    parsers = itertools.count()

    def on_parser(parser: Any, **_: Any) -> None:
        add_arguments(parser, scenario)
        if next(parsers) == 0:  # later ones are made when the page is loaded
            check_when_parsed(parser, _give_up)

    events.init_command_line_parser.add_listener(on_parser)
    events.init.add_listener(_on_init)


def _give_up(error: KvswarmError) -> NoReturn:
    sys.stderr.write(f"kvswarm: {error}\n")
    sys.exit(error.exit_code)


def _on_init(environment: Any, runner: Any, web_ui: Any, **_: Any) -> None:
    # Python's own handler would raise KeyboardInterrupt inside whatever greenlet runs, in the middle of a read.
    hub = gevent.get_hub()
    gevent.signal_handler(signal.SIGINT, hub.handle_system_error, KeyboardInterrupt, KeyboardInterrupt())
    if isinstance(runner, (WorkerRunner, LocalRunner)):
        WorkerSide(environment, runner)
    if not isinstance(runner, WorkerRunner):
        MasterSide(environment, runner, web_ui)


class WorkerSide:
    """Listens for plan and drain; one instance in each process that has users."""

    def __init__(self, environment: Any, runner: Any) -> None:
        self._environment = environment
        self._runner = runner
        runner.register_message(PLAN, self._on_plan)
        runner.register_message(DRAIN, self._on_drain, concurrent=True)
        environment.events.report_to_master.add_listener(self._on_report)
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
            data[LIVE] = {"run_id": run.plan.run_id, "figures": run.live.take()}

    def _on_quitting(self, **_: Any) -> None:
        """This process is about to end, perhaps told so by a signal: bring the rows home first.

        The master may have asked for them just before, and that drain go on still; a last word said twice does no harm.
        """
        run = SessionUser.run_of_this_worker
        if run is not None and not isinstance(self._runner, LocalRunner):
            self._runner.send_message(DRAINED, run.drain("signal").to_message())


class MasterSide:
    """Prepares runs and follows Locust's events; one instance, in the master or the one local process."""

    def __init__(self, environment: Any, runner: Any, web_ui: Any) -> None:
        self._environment = environment
        self._runner = runner
        self._headless = web_ui is None
        self._conductor: Conductor | None = None
        self._keeps_time = False
        runner.register_message(PART, self._on_part)
        runner.register_message(DRAINED, self._on_drained)
        environment.events.worker_report.add_listener(self._on_worker_report)
        environment.events.test_start.add_listener(self._on_test_start)
        environment.events.test_stopping.add_listener(self._on_test_stopping)
        environment.events.quitting.add_listener(self._on_quitting)
        options = environment.parsed_options
        if web_ui is not None:
            webpage.attach(web_ui, self.make_ready, self._call_off)
            webpage.add_tab(web_ui, self._tab_rows)
            if options.target:  # the form's Host shows it, too
                environment.host = options.target
        if self._headless or options.autostart:
            try:
                self.make_ready(options)
                self._decide_users(options)
                self._keep_time(options)
            except KvswarmError as error:
                runner.quit()
                _give_up(error)
            except KeyboardInterrupt:  # Locust's own handling begins later
                runner.quit()
                _give_up(IncompleteRun("stopped before the load began"))

    def _decide_users(self, options: Namespace) -> None:
        """Locust itself would start one where the command line does not say how many."""
        if self._conductor is not None:
            options.num_users = self._conductor.preparation.users

    def _keep_time(self, options: Namespace) -> None:
        """Where targets have their turns one after the other, Locust's own timer would end the run after the first."""
        self._keeps_time = self._conductor is not None and len(self._conductor.preparation.legs) > 1
        if self._keeps_time:
            options.run_time = None

    def make_ready(self, given: Namespace) -> None:
        """Prepare a run from options as given. Raises InputError. Does nothing while a run is on (users are edited)."""
        if self._runner.state in (STATE_RUNNING, STATE_SPAWNING):
            return
        if self._conductor is not None and self._conductor.is_fresh:
            self._conductor.end("never started")
        if self._conductor is not None and not self._conductor.is_over:
            raise InputError("The run before goes on with its next target: stop it first.")
        options = Namespace(**{**vars(given), "target": given.target or self._environment.host or ""})
        self._conductor = Conductor(prepare(RunOptions.from_namespace(options)), self._runner)
        self._environment.host = ",".join(lane.target.url for lane in self._conductor.preparation.lanes)

    def _call_off(self) -> None:
        """The page's Stop button: it may be pressed between two targets, where Locust has nothing to stop."""
        if self._conductor is not None:
            self._conductor.called_off = True

    def _on_test_start(self, **_: Any) -> None:
        try:
            if self._conductor is None or self._conductor.is_over:
                self.make_ready(self._environment.parsed_options)
        except InputError as error:  # a start that did not come through the form, such as the key "w"
            logger.error("kvswarm: %s", error)
            self._environment.process_exit_code = error.exit_code
            gevent.spawn(self._runner.quit if self._headless else self._runner.stop)
            return
        assert self._conductor is not None
        self._conductor.start(show_progress=self._headless, gather=self._gather)
        if len(self._conductor.preparation.legs) > 1:
            gevent.spawn_later(self._conductor.preparation.options.run_time_s, self._leg_is_up, self._conductor.leg)

    def _on_part(self, msg: Any, **_: Any) -> None:
        if self._conductor is not None:
            self._conductor.on_part(msg.data)

    def _on_drained(self, msg: Any, **_: Any) -> None:
        if self._conductor is not None:
            self._conductor.on_drained(msg.node_id, Drained.from_message(msg.data))

    def _on_worker_report(self, data: dict[str, Any], **_: Any) -> None:
        if LIVE in data:
            self._merge(**data[LIVE])

    def _gather(self) -> None:
        run = SessionUser.run_of_this_worker
        if run is not None:  # one process does everything, and nothing is reported
            self._merge(run.plan.run_id, run.live.take())

    def _tab_rows(self) -> list[dict[str, Any]]:
        self._gather()
        return [] if self._conductor is None else self._conductor.tab_rows()

    def _merge(self, run_id: str, figures: list[dict[str, Any]]) -> None:
        if self._conductor is not None and self._conductor.preparation.run_id == run_id:
            self._conductor.live.merge(figures)

    def _leg_is_up(self, leg: Leg) -> None:
        if self._conductor is not None and self._conductor.leg is leg and not leg.ended:
            self._runner.stop()

    def _on_test_stopping(self, **_: Any) -> None:
        stopped_by = "run-time" if self._headless else "stop"
        if self._conductor is not None and self._conductor.goes_on():
            self._conductor.end_leg(stopped_by)
            gevent.spawn(self._next_leg, self._conductor)
        else:
            self._end(stopped_by)
            if self._headless and self._keeps_time:
                gevent.spawn(self._runner.quit)

    def _next_leg(self, conductor: Conductor) -> None:
        """Once Locust has stopped all users: go on with the next target, with as many users and the same ramp."""
        while self._runner.state != STATE_STOPPED:
            gevent.sleep(0.05)
        try:
            if not conductor.is_over and not conductor.called_off:
                conductor.ready_next_leg()
        except InputError as error:
            logger.error("kvswarm: %s", error)
        if conductor.is_over:  # by a signal, or as the target does not answer
            if self._headless:
                self._runner.quit()
        elif conductor.called_off:
            self._end("stop")
        else:
            options = self._environment.parsed_options
            self._runner.start(options.num_users, options.spawn_rate)

    def _on_quitting(self, **_: Any) -> None:
        """Ctrl-C and SIGTERM come here before Locust tears the runner down; the regular end too, when all is done."""
        self._end("signal")

    def _end(self, stopped_by: str) -> None:
        if self._conductor is not None:
            self._environment.process_exit_code = self._conductor.end(stopped_by)
