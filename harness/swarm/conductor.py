"""The master's part of one run: plan, metrics, watch over the workers, drain, manifest, exit code."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event
from locust.runners import STATE_MISSING, LocalRunner

from harness.command import kvswarm
from harness.errors import IncompleteRun, InputError, RecordError
from harness.record.manifest import Phase
from harness.record.run_directory import RunDirectory, create
from harness.swarm.live import LiveFigures, run_lines
from harness.swarm.manifest import finish_manifest, first_manifest
from harness.swarm.outbox import Inbox
from harness.swarm.plan import Drained, Plan
from harness.swarm.prepare import Preparation, results_base
from harness.swarm.server_metrics import ServerMetrics
from harness.swarm.warm_up import warm_up

logger = logging.getLogger(__name__)

PLAN, DRAIN = "kvswarm-plan", "kvswarm-drain"
"""The messages of a run from master to worker."""
PART, DRAINED = "kvswarm-part", "kvswarm-drained"
"""Those from worker to master."""

ACK_GRACE_S = 20.0
"""How long after the drain timeout the master still waits for a worker's word."""
PROGRESS_EVERY_S = 5.0


class Conductor:
    """One run, from a `Preparation` to a complete or incomplete record."""

    def __init__(self, preparation: Preparation, runner: Any) -> None:
        """Makes the run's directory and warms the target up. Raises InputError if either cannot be done."""
        self.preparation = preparation
        self.started = False
        self.live = LiveFigures()
        self._runner = runner
        self._directory: RunDirectory = create(results_base(preparation.options), preparation.run_id)
        self._manifest = first_manifest(preparation)
        self._directory.write_manifest(self._manifest)
        self._metrics = ServerMetrics(preparation, self._directory.url)
        self._report = f"{kvswarm()} report {self._directory.url}"
        self._inbox = Inbox(self._directory.folder)
        self._parts: list[tuple[str, int]] = []
        self._planned: dict[str, int] = {}
        self._drained: dict[str, Drained] = {}
        self._lost: set[str] = set()
        self._problems: list[str] = []
        self._ending = False
        self._ended = Event()
        self._exit_code = 0
        self._monitor: gevent.Greenlet | None = None
        self._before_load()

    def _before_load(self) -> None:
        self._metrics.look_before()
        began = time.time_ns()
        try:
            self._parts += warm_up(self.preparation, self._directory.url)
        except InputError as error:
            self._problems.append(str(error))
            self.end("warm-up failed")
            raise
        self._metrics.settle("warmup_end")
        self._phase("warmup", began)

    def _phase(self, name: str, began_ns: int) -> None:
        self._manifest.phases.append(Phase(phase=name, start_ns=began_ns, end_ns=time.time_ns()))

    # --- the load ------------------------------------------------------------------------------

    def start(self, show_progress: bool, gather: Callable[[], None]) -> None:
        """Send every ready worker its plan; Locust sends them their users next.

        `gather` brings `live` up to date where no worker reports to it.
        """
        self.started = True
        self._began_ns = time.time_ns()
        if isinstance(self._runner, LocalRunner):
            ids = [self._runner.client_id]
        else:
            ids = sorted((node.id for node in self._runner.clients.ready), key=self._runner.get_worker_index)
        for number, client_id in enumerate(ids):
            self._planned[client_id] = number
        for number, client_id in enumerate(ids):
            self._send(PLAN, self._plan(number, len(ids)).to_message(), client_id)
        if show_progress:
            self._say_start(len(ids))
        self._metrics.start()
        self._monitor = gevent.spawn(self._watch, show_progress, gather)

    def _plan(self, number: int, workers: int) -> Plan:
        made = self.preparation
        return Plan(
            run_id=made.run_id,
            folder=self._directory.url,
            scenario=made.scenario.to_json(),
            nonce=made.nonce,
            target=made.target.model_dump(mode="json"),
            engine=made.identity.engine,
            model=made.identity.model,
            lexicon=made.lexicon.to_json(),
            worker=number,
            workers=workers,
            drain_timeout_s=made.options.drain_timeout_s,
        )

    def _send(self, kind: str, data: dict[str, Any], client_id: str) -> None:
        self._runner.send_message(kind, data, client_id)

    def _watch(self, show_progress: bool, gather: Callable[[], None]) -> None:
        """Notice workers that die or come late; write the metrics so far; say every few seconds how the run goes."""
        next_word = time.monotonic() + PROGRESS_EVERY_S
        while True:
            gevent.sleep(1.0)
            self._notice_lost_workers()
            self._metrics.flush_if_due()
            if show_progress and time.monotonic() >= next_word:
                next_word += PROGRESS_EVERY_S
                gather()
                self._say_progress()

    def _notice_lost_workers(self) -> None:
        if isinstance(self._runner, LocalRunner):
            return
        for client_id, number in self._planned.items():
            node = self._runner.clients.get(client_id)
            gone = node is None or node.state == STATE_MISSING
            if gone and client_id not in self._drained and client_id not in self._lost:
                self._lost.add(client_id)
                self._problems.append(f"worker {number} was lost during the run; its last rows are missing")
                logger.error("kvswarm: worker %d was lost; the run will be marked incomplete", number)
        late = {node.id for node in self._runner.clients.all} - set(self._planned)
        if late and not self._ending:
            problem = "a worker joined during the run and was given users without a part in it: less load than asked"
            if problem not in self._problems:
                self._problems.append(problem)

    def _say_start(self, workers: int) -> None:
        made = self.preparation
        lengths = f"prompts of {'exact' if made.lexicon.exact else 'approximate'} length"
        who = f"{made.identity.engine} serves {made.identity.model}"
        hands = "1 worker" if workers == 1 else f"{workers} workers"
        print(f"kvswarm: {who}; {lengths}; {hands}; cold start by {made.cold_start}", flush=True)

    def _say_progress(self) -> None:
        seconds = (time.time_ns() - self._began_ns) / 1e9
        print(f"  {seconds:5.0f} s  {self._runner.user_count} users  {self.live.line()}", flush=True)

    def tab_rows(self) -> list[dict[str, Any]]:
        """What the page's tab shows of this run."""
        run_id, state = self.preparation.run_id, self._manifest.state
        return [*self.live.rows(), *run_lines(run_id, state, self._directory.url, self._report, self._problems)]

    # --- the end -------------------------------------------------------------------------------

    def on_part(self, message: dict[str, Any]) -> None:
        """A piece of a part, from a worker on a machine that does not see the run's directory."""
        if message["run_id"] != self.preparation.run_id:
            return
        try:
            self._inbox.take(message)
        except OSError as error:
            self._problems.append(f"a worker's part {message['name']} could not be written: {error}")

    def on_drained(self, client_id: str, drained: Drained) -> None:
        if drained.run_id != self.preparation.run_id:
            return
        self.live.merge(drained.figures)
        # In one process Locust names the sender "local".
        known = client_id if client_id in self._planned else next(iter(self._planned))
        self._drained[known] = drained
        if drained.reason == "failed" and not self._ending:
            gevent.spawn(self._runner.stop)

    def end(self, stopped_by: str) -> int:
        """Drain, take the last scrape, write the manifest. Returns the exit code that the run asks for.

        Only the first call does so; another one, as of a second Ctrl-C, cancels what is in flight and waits for it.
        """
        if self._ending:
            if not self._ended.is_set():
                self._cut_short()
                self._ended.wait()
            return self._exit_code
        self._ending = True
        try:
            self._stop_load()
            self._finish(stopped_by)
        except (OSError, RecordError) as error:
            self._exit_code = IncompleteRun.exit_code
            sys.stderr.write(f"kvswarm: {error}\n")
        finally:
            self._ended.set()
        return self._exit_code

    def _stop_load(self) -> None:
        drain_ns = time.time_ns()
        self._collect_workers()
        if self._monitor is not None:
            self._monitor.kill()
        self._metrics.finish()
        if self.started:
            self._manifest.phases.append(Phase(phase="measure", start_ns=self._began_ns, end_ns=drain_ns))
            self._phase("drain", drain_ns)
        self._problems += self._metrics.problems
        self._manifest.notes += self._metrics.notes

    def _collect_workers(self) -> None:
        """Ask every worker for its rows and wait; a KeyboardInterrupt meanwhile cancels what is in flight."""
        run = {"run_id": self.preparation.run_id, "cut_short": False}
        for client_id in self._planned:
            if client_id not in self._drained:
                gevent.spawn(self._send, DRAIN, run, client_id)
        deadline = time.monotonic() + self.preparation.options.drain_timeout_s + ACK_GRACE_S
        while True:
            try:
                self._notice_lost_workers()
                missing = [i for i in self._planned if i not in self._drained and i not in self._lost]
                if not missing:
                    return
                if time.monotonic() > deadline:
                    break
                gevent.sleep(0.05)
            except KeyboardInterrupt:
                self._cut_short()
        for client_id in missing:
            self._problems.append(
                f"worker {self._planned[client_id]} did not answer at the end; its rows are not counted"
            )

    def _cut_short(self) -> None:
        for client_id in self._planned:
            if client_id not in self._drained:
                self._send(DRAIN, {"run_id": self.preparation.run_id, "cut_short": True}, client_id)

    def _finish(self, stopped_by: str) -> None:
        drained = sorted(self._drained.values(), key=lambda word: word.worker)
        if self.started and not self._planned:
            self._problems.append("no worker was connected when the run started")
        for word in drained:
            if word.problem:
                self._problems.append(f"worker {word.worker}: {word.problem}")
            if word.reason == "signal" and stopped_by != "signal":
                self._problems.append(f"worker {word.worker} was stopped by a signal before the run ended")
        for word in drained:
            self._parts += [(str(name), int(rows)) for name, rows in word.parts]
        workers = {client_id: self._drained.get(client_id) for client_id in self._planned}
        finish_manifest(self._manifest, stopped_by, self._parts, self._metrics.parts, workers, self._problems)
        self._directory.write_manifest(self._manifest)
        if self._problems:
            self._exit_code = IncompleteRun.exit_code
        elif any(word.failed > word.cancelled for word in drained):
            options = self._runner.environment.parsed_options
            self._exit_code = options.exit_code_on_error
        if self.started:
            self._say_end(sum(word.rows for word in drained))

    def _say_end(self, rows: int) -> None:
        for problem in self._problems:
            sys.stderr.write(f"kvswarm: {problem}\n")
        print(
            f"kvswarm: {rows} requests recorded in {self._directory.url}; see the tables with: {self._report}",
            flush=True,
        )
