"""What the master, or the one process of a local run, does at Locust's events and at its workers' messages."""

from __future__ import annotations

import logging
import sys
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

import gevent
from locust.runners import STATE_RUNNING, STATE_SPAWNING, STATE_STOPPED, MasterRunner

from harness.errors import IncompleteRun, InputError, KvswarmError
from harness.swarm import ramp, webpage
from harness.swarm.conductor import Conductor
from harness.swarm.dealing import PartnersOnly
from harness.swarm.leg import DRAINED, PART, TAKEN, Leg
from harness.swarm.live import COLUMNS
from harness.swarm.options import RunOptions
from harness.swarm.pages import Have, add_pages
from harness.swarm.plan import Drained
from harness.swarm.prepare import prepare
from harness.swarm.roll_call import RollCall
from harness.swarm.user import SessionUser
from harness.swarm.worker_side import LIVE

logger = logging.getLogger(__name__)


class MasterSide:
    """Prepares runs and follows Locust's events; one instance, in the master or the one local process."""

    def __init__(self, environment: Any, runner: Any, web_ui: Any) -> None:
        self._environment = environment
        self._runner = runner
        self._headless = web_ui is None
        self._conductor: Conductor | None = None
        self._keeps_time = False
        self._roll_call: RollCall | None = None
        if isinstance(runner, MasterRunner):
            self._roll_call = RollCall(runner)
            environment.dispatcher_class = partial(PartnersOnly, self._has_part)
        runner.register_message(PART, self._on_part, concurrent=True)
        runner.register_message(DRAINED, self._on_drained)
        environment.events.worker_report.add_listener(self._on_worker_report)
        ramp.attach(environment, runner, self._ramp)
        environment.events.test_start.add_listener(self._on_test_start)
        environment.events.test_stopping.add_listener(self._on_test_stopping)
        environment.events.quitting.add_listener(self._on_quitting)
        options = environment.parsed_options
        if web_ui is not None:
            webpage.attach(web_ui, self.make_ready, self._call_off)
            webpage.add_tab(web_ui)
            webpage.arrange_form(web_ui)
            add_pages(web_ui, self._live, options.results)
            if options.target:  # the form's Host shows it, too
                environment.host = options.target
        if self._headless or options.autostart:
            try:
                if options.load == "open":
                    options.spawn_rate = None  # all seats are there from the start, whatever was said
                self.make_ready(options)
                self._decide_users(options)
                self._keep_time(options)
            except KvswarmError as error:
                runner.quit()
                give_up(error)
            except KeyboardInterrupt:  # Locust's own handling begins later
                runner.quit()
                give_up(IncompleteRun("stopped before the load began"))

    def _decide_users(self, options: Namespace) -> None:
        """Locust itself would start one where the command line does not say how many."""
        if self._conductor is not None:
            options.num_users = self._conductor.preparation.users
            if options.load == "open":
                options.spawn_rate = options.num_users
                logging.getLogger("locust.runners").addFilter(_is_no_warning_of_the_spawn_rate)

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
        self._conductor = Conductor(prepare(RunOptions.from_namespace(options)), self._runner, self._roll_call)
        self._environment.host = ",".join(lane.target.url for lane in self._conductor.preparation.lanes)

    def _ramp(self) -> ramp.Ramp | None:
        return None if self._conductor is None else self._conductor.leg.ramp

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
        if not self._conductor.leg.planned:
            gevent.spawn(self._runner.quit if self._headless else self._runner.stop)
            return
        if len(self._conductor.preparation.legs) > 1:
            gevent.spawn_later(self._conductor.preparation.options.run_time_s, self._leg_is_up, self._conductor.leg)

    def _has_part(self, client_id: str) -> bool:
        return self._conductor is not None and client_id in self._conductor.leg.planned

    def _on_part(self, msg: Any, **_: Any) -> None:
        if self._conductor is not None and self._conductor.takes(msg.data):
            taken = {key: msg.data[key] for key in ("run_id", "name", "number")}
            self._runner.send_message(TAKEN, taken, msg.node_id)

    def _on_drained(self, msg: Any, **_: Any) -> None:
        if self._conductor is not None:
            self._conductor.on_drained(msg.node_id, Drained.from_message(msg.data))

    def _on_worker_report(self, data: dict[str, Any], **_: Any) -> None:
        if LIVE in data:
            self._take(data[LIVE])

    def _gather(self) -> None:
        run = SessionUser.run_of_this_worker
        if run is not None:  # one process does everything, and nothing is reported
            self._take(run.report())

    def _live(self, run_id: str, have: Have) -> dict[str, Any] | None:
        """What the page shows; None: there was no run yet."""
        if self._conductor is None:
            return None
        self._gather()
        about, board = self._conductor.about(), self._conductor.board
        lines = board.lines(have if run_id == about["run_id"] else ())
        return {"about": about, "columns": list(COLUMNS.items()), "table": board.total.rows(), "lines": lines}

    def _take(self, report: Mapping[str, Any]) -> None:
        if self._conductor is not None and self._conductor.preparation.run_id == report["run_id"]:
            self._conductor.board.take(report)

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
        if self._conductor is not None:
            self._conductor.wait_for_report()

    def _end(self, stopped_by: str) -> None:
        if self._conductor is not None:
            self._environment.process_exit_code = self._conductor.end(stopped_by)


def _is_no_warning_of_the_spawn_rate(record: logging.LogRecord) -> bool:
    """Idle seats that are started at once do no harm."""
    return not record.getMessage().startswith("Your selected spawn rate is very high")


def give_up(error: KvswarmError) -> NoReturn:
    """End this process with one sentence, before Locust has begun."""
    sys.stderr.write(f"kvswarm: {error}\n")
    sys.exit(error.exit_code)
