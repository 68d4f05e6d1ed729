"""The master's part of one run: its legs in their order, the manifest, the exit code."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event

from harness.command import kvswarm
from harness.errors import IncompleteRun, InputError, RecordError
from harness.record.run_directory import RunDirectory, create
from harness.swarm.board import Board
from harness.swarm.leg import Leg
from harness.swarm.manifest import finish_manifest, first_manifest, record_first_requests, record_leg
from harness.swarm.outbox import Inbox
from harness.swarm.plan import Drained
from harness.swarm.prepare import Preparation, results_base
from harness.swarm.report_file import ReportFile
from harness.swarm.roll_call import RollCall

logger = logging.getLogger(__name__)

PROGRESS_EVERY_S = 5.0


class Conductor:
    """One run, from a `Preparation` to a complete or incomplete record."""

    def __init__(self, preparation: Preparation, runner: Any, roll_call: RollCall | None) -> None:
        """Makes the run's directory and gets the first leg ready. Raises InputError if either cannot be done.

        `roll_call`: of the workers; None where one process does everything.
        """
        self.preparation = preparation
        self.board = Board(preparation)
        self.called_off = False
        """No further leg is to begin."""
        self._runner = runner
        self._roll_call = roll_call
        self._directory: RunDirectory = create(results_base(preparation.options), preparation.run_id)
        self._manifest = first_manifest(preparation)
        self._directory.write_manifest(self._manifest)
        self._report_file: ReportFile | None = None
        self._report = f"{kvswarm()} report {self._directory.url}"
        self._inbox = Inbox(self._directory.folder, in_thread=gevent.get_hub().threadpool.apply)
        self._problems: list[str] = []
        self._legs: list[Leg] = []
        self._leg_ended = Event()
        self._ending = False
        self._ended = Event()
        self._exit_code = 0
        self._next_word_s = 0.0
        self.ready_next_leg()

    @property
    def leg(self) -> Leg:
        """The one that goes on, or was the last to do so."""
        return self._legs[-1]

    @property
    def is_fresh(self) -> bool:
        """Made ready, and no load yet."""
        return len(self._legs) == 1 and not self.leg.started and not self._ending

    @property
    def is_over(self) -> bool:
        return self._ending

    # --- legs ----------------------------------------------------------------------------------

    def ready_next_leg(self) -> None:
        """Everything of the next leg that comes before its load. Raises InputError, and the run has ended then."""
        leg = Leg(self.preparation, len(self._legs), self._directory.url, self._runner, self._roll_call)
        self._legs.append(leg)
        self._leg_ended.clear()
        try:
            leg.prepare()
        except InputError as error:
            self._problems.append(str(error))
            self.end("warm-up failed")
            raise
        except KeyboardInterrupt:
            self._problems.append("the run was stopped before its load began")
            self.end("signal")
            raise
        record_first_requests(self._manifest, leg)
        self._directory.write_manifest(self._manifest)

    def start(self, show_progress: bool, gather: Callable[[], None]) -> None:
        """Begin the load of the leg that is ready; Locust sends the workers their users next.

        `gather` brings `board` up to date where no worker reports to it.
        """

        def each_second() -> None:
            if self.board.is_due():
                gather()
                self.board.point(self.leg)
            if show_progress and time.monotonic() >= self._next_word_s:
                self._next_word_s += PROGRESS_EVERY_S
                gather()
                self._say_progress()

        self._next_word_s = time.monotonic() + PROGRESS_EVERY_S
        self.board.begin(self.leg.number, somebody_looks_on=not show_progress)
        workers = self.leg.start(each_second, tells_requests=not show_progress)
        self.board.expect(self.leg, self._manifest)
        if show_progress:
            self._say_start(workers)

    def goes_on(self) -> bool:
        """Whether another leg follows now: the time of this one is up, and nobody has called the run off."""
        run_time_s = self.preparation.options.run_time_s
        if self.called_off or self._ending or run_time_s is None or not self.leg.started:
            return False
        # Two timers may stop a leg: Locust's, if the page started it, and ours, a moment later.
        time_is_up = (time.time_ns() - self.leg.planned_ns) / 1e9 >= run_time_s - 0.5
        return time_is_up and len(self._legs) < len(self.preparation.legs)

    def end_leg(self, stopped_by: str) -> None:
        """End the load of this leg and keep what it brought. Only the first call for a leg does so; others wait."""
        if self.leg.ended:
            self._leg_ended.wait()
            return
        try:
            self.leg.end(stopped_by)
            if self.leg.planned:
                self.board.end(self.leg)
            record_leg(self._manifest, self.preparation, self.leg)
            self._directory.write_manifest(self._manifest)
        finally:
            self._leg_ended.set()

    def _say_start(self, workers: int) -> None:
        legs = len(self.preparation.legs)
        for state in self.leg.lanes:
            lane = state.lane
            turn = (
                f"target {self.leg.number + 1} of {legs}, {lane.target.name}: "
                if len(self.preparation.lanes) > 1
                else ""
            )
            lengths = f"prompts of {'exact' if lane.lexicon.exact else 'approximate'} length"
            who = f"{turn}{lane.identity.engine} serves {lane.identity.model}"
            hands = "1 worker" if workers == 1 else f"{workers} workers"
            print(f"kvswarm: {who}; {lengths}; {hands}; cold start by {state.cold_start.words}", flush=True)
            if state.check is not None:
                print(f"kvswarm: start-up check: {state.check.sentence}", flush=True)

    def _say_progress(self) -> None:
        seconds = (time.time_ns() - self.leg.began_ns) / 1e9
        print(
            f"  {seconds:5.0f} s  {self._runner.user_count} users  {self.board.total.line(self.leg.names)}", flush=True
        )

    def about(self) -> dict[str, Any]:
        """What the page says of this run beside its figures."""
        legs, leg = self._legs, self.leg
        options = self.preparation.options
        return {
            "run_id": self.preparation.run_id,
            "scenario": self.preparation.scenario.name,
            "state": self._manifest.state,
            "phase": leg.phase,
            "targets": [lane.target.name for lane in self.preparation.lanes],
            "loaded": list(leg.names),
            "leg": leg.number + 1,
            "legs": len(self.preparation.legs),
            "load": f"open loop, {options.arrivals} arrivals, rate {options.rate or 'of the trace'}"
            if options.load == "open"
            else "closed loop",
            "seconds": round((time.time_ns() - leg.began_ns) / 1e9, 1) if leg.started and not leg.ended else None,
            "directory": self._directory.url,
            "report": self._report,
            "problems": self._problems + [problem for leg in legs for problem in leg.problems],
            "notes": [note for leg in legs for note in leg.notes],
        }

    # --- what workers say ----------------------------------------------------------------------

    def takes(self, message: dict[str, Any]) -> bool:
        """Take a piece of a part from a worker that does not see the run's directory. Whether to acknowledge it."""
        if message["run_id"] != self.preparation.run_id:
            return False
        self.leg.heard()
        return self._inbox.take(message)

    def on_drained(self, client_id: str, drained: Drained) -> None:
        if (drained.run_id, drained.leg) != (self.preparation.run_id, self.leg.number):
            return
        self.board.count(drained.figures)
        self.leg.on_drained(client_id, drained)
        if drained.reason == "failed" and not self.leg.ended:
            gevent.spawn(self._runner.stop)

    # --- the end -------------------------------------------------------------------------------

    def end(self, stopped_by: str) -> int:
        """End the leg and the run. Returns the exit code that the run asks for.

        Only the first call does so; another one, as of a second Ctrl-C, cancels what is in flight and waits for it.
        """
        if self._ending:
            if not self._ended.is_set():
                self.leg.cut_short()
                self._ended.wait()
            return self._exit_code
        self._ending = True
        try:
            self.end_leg(stopped_by)
            self._finish(stopped_by)
        except (OSError, RecordError) as error:
            self._exit_code = IncompleteRun.exit_code
            sys.stderr.write(f"kvswarm: {error}\n")
        finally:
            self._ended.set()
        return self._exit_code

    def wait_for_report(self) -> None:
        """Until report.html is there, if it is to be made at all: it must not outlive the process that asked for it."""
        if self._report_file is not None:
            self._report_file.wait()

    def _finish(self, stopped_by: str) -> None:
        began = [leg for leg in self._legs if leg.started]
        if began:
            for lanes in self.preparation.legs[len(began) :]:
                names = " and ".join(lane.target.name for lane in lanes)
                self._problems.append(f"target {names} was not loaded: the run ended before its turn")
        self._problems += [f"{name} could not be written: {why}" for name, why in self._inbox.unwritten.items()]
        problems = self._problems + [problem for leg in self._legs for problem in leg.problems]
        finish_manifest(self._manifest, stopped_by, problems)
        self._directory.write_manifest(self._manifest)
        words = [word for leg in self._legs for word in leg.words]
        if problems:
            self._exit_code = IncompleteRun.exit_code
        elif any(word.failed > word.cancelled for word in words):
            options = self._runner.environment.parsed_options
            self._exit_code = options.exit_code_on_error
        if began:
            rows = sum(word.rows for word in words)
            self._say_end(rows, problems)
            if rows and not self._runner.environment.parsed_options.no_report:
                self._report_file = ReportFile(self._directory.folder)

    def _say_end(self, rows: int, problems: list[str]) -> None:
        for problem in problems:
            sys.stderr.write(f"kvswarm: {problem}\n")
        print(
            f"kvswarm: {rows} requests recorded in {self._directory.url}; see the tables with: {self._report}",
            flush=True,
        )
