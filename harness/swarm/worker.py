"""The part of a run that sends requests: in each Locust worker, or in the one process of a local run."""

from __future__ import annotations

import gc
import itertools
import logging
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import gevent
from gevent.event import Event

from harness.client.reply import Reply
from harness.client.row import Labels
from harness.client.timed import TimedClient
from harness.engines.detect import bind
from harness.engines.target import Target
from harness.record.run_directory import is_there
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.swarm.live import LiveFigures
from harness.swarm.outbox import Outbox
from harness.swarm.plan import FLUSH_EVERY_S, Drained, LanePlan, Plan
from harness.swarm.player import Gate, Player
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import Scenario
from harness.workload.session import Session
from harness.workload.text import Renderer
from harness.workload.workload import Workload

logger = logging.getLogger(__name__)


class _Lane:
    """This worker's part of the load on one target."""

    def __init__(self, plan: Plan, lane: LanePlan, scenario: Scenario) -> None:
        self._target = Target.model_validate(lane.target)
        self._engine = bind(lane.engine, self._target, lane.model)
        self._workload = Workload(scenario, lane.nonce)
        self._live_replies = scenario.replies == "live"
        self._renderer = Renderer(Lexicon.from_json(lane.lexicon), scenario)
        self._labels = Labels(
            run_id=plan.run_id,
            target=self._target.name,
            target_number=lane.number,
            engine=lane.engine,
            model=lane.model,
            scenario=scenario.name,
            kind=scenario.kind,
            phase="measure",
            worker=plan.worker,
            cache_salt=lane.cache_salt,
        )
        self._sessions = itertools.count(plan.worker, plan.workers)
        self._first_user, self._users_apart = plan.worker, plan.workers
        self._slots = lane.slots

    def player(self, user: int, gate: Gate, record: Callable[[dict[str, Any], Reply], None]) -> Player:
        connect = partial(TimedClient, self._target, self._engine.read_event)
        slot = None if self._slots is None else (self._first_user + user * self._users_apart) % self._slots
        return Player(self._labels, user, connect, self._engine, self._renderer, self._live_replies, gate, record, slot)

    def next_session(self) -> Session:
        return self._workload.session(next(self._sessions))


class RequestFailed(Exception):
    """What Locust's own statistics show for a request that did not end well."""


class WorkerRun:
    """One run on one worker, from the plan to the last row."""

    def __init__(
        self, plan: Plan, fire_request: Callable[..., None], send_part: Callable[[dict[str, Any]], None]
    ) -> None:
        """`fire_request` is Locust's request event, called once for each HTTP request.

        `send_part` sends a message to the master: parts go there if this machine does not see the run's directory.
        """
        self.plan = plan
        self.live = LiveFigures()
        self._fire_request = fire_request
        scenario = Scenario.from_json(plan.scenario)
        self._lanes = [_Lane(plan, lane, scenario) for lane in plan.lanes]
        self._users = itertools.count()
        self._players: dict[Player, _Lane] = {}
        self._in_flight = 0
        self._draining = Event()
        self._drained = Event()
        self._rows = self._failed = self._cancelled = 0
        self._cpu_s, self._wall_s = _cpu_s(), time.monotonic()
        self._began_ns = time.time_ns()
        """When the load began, as far as this worker knows."""
        self._bad_row = self._unwritten = self._reason = ""
        self._send_part = send_part
        self._outbox = None if is_there(plan.folder, plan.run_id) else Outbox(plan.run_id)
        self._writer = PartWriter(
            self._outbox or plan.folder,
            f"requests/part-{plan.leg}-{plan.worker:04d}",
            REQUESTS,
            in_thread=gevent.get_hub().threadpool.apply,
        )
        self._flusher = gevent.spawn(self._flush_now_and_then)
        # What is there now stays, so the collector need not look at it again and again while streams wait.
        gc.collect()
        gc.freeze()

    # --- what a user does ----------------------------------------------------------------------

    def new_player(self) -> Player:
        """A player with connections of its own, for one user."""
        user = next(self._users)
        # Dealt out so that over all workers each target (and each slot) gets as many users as any other, or one more.
        lane = self._lanes[(user + self.plan.worker) % len(self._lanes)]
        player = lane.player(user, gate=self, record=self._record)
        self._players[player] = lane
        return player

    def retire(self, player: Player) -> None:
        """The user of `player` has stopped."""
        player.close()
        self._players.pop(player, None)

    def play_one(self, player: Player) -> None:
        """Play the next session of this worker, with its sub-agents, on the player's target."""
        self._in_flight += 1
        try:
            player.play(self._players[player].next_session(), self._began_ns)
        finally:
            self._in_flight -= 1

    def closed(self) -> bool:
        return bool(self._draining.is_set())

    def wait(self, seconds: float) -> bool:
        if seconds > 0:
            self._draining.wait(seconds)
        return self.closed()

    def _record(self, row: dict[str, Any], reply: Reply) -> None:
        try:
            self._writer.add(row)
        except (ValueError, TypeError, KeyError) as error:
            self._bad_row = self._bad_row or f"a row could not be written: {error}"
            raise
        self._rows += 1
        self.live.add(row)
        failed = reply.status != "ok"
        self._failed += failed
        self._cancelled += reply.status == "cancelled"
        self._fire_request(
            request_type="POST",
            name=f"{row['kind']} {row['warmth']}",
            response_time=reply.e2e_ms or 0.0,
            response_length=reply.bytes,
            exception=RequestFailed(": ".join(filter(None, (reply.status, reply.error)))) if failed else None,
            context={},
        )

    # --- the end -------------------------------------------------------------------------------

    def drain(self, reason: str) -> Drained:
        """Let requests in flight end (at most the plan's drain timeout), cancel the rest, write the last part.

        May be called from several greenlets; all return when the first is through. A KeyboardInterrupt meanwhile, as of
        a second Ctrl-C, cancels what is in flight at once.
        """
        is_first = not self._draining.is_set()
        self._draining.set()
        self._reason = self._reason or reason
        try:
            if is_first:
                self._wait_for_requests(self.plan.drain_timeout_s)
            else:
                self._drained.wait()
        except KeyboardInterrupt:
            self.cut_drain_short()
        if is_first:
            self.cut_drain_short()
            self._wait_for_requests(5.0)
            for player in self._players:
                player.close()
            self._flusher.kill()
            self._flush()
            self._cpu_s, self._wall_s = _cpu_s() - self._cpu_s, time.monotonic() - self._wall_s
            self._drained.set()
        self._drained.wait()
        return Drained(
            run_id=self.plan.run_id,
            leg=self.plan.leg,
            worker=self.plan.worker,
            reason=self._reason,
            parts=[list(part) for part in self._writer.parts],
            rows=self._rows,
            failed=self._failed,
            cancelled=self._cancelled,
            cpu_s=self._cpu_s,
            wall_s=self._wall_s,
            problem=self._bad_row or self._unwritten,
            figures=self.live.take(),
        )

    def cut_drain_short(self) -> None:
        """Cancel what is in flight at once; `drain` then ends soon."""
        for player in self._players:
            player.cancel()

    def _wait_for_requests(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._in_flight and time.monotonic() < deadline:
            gevent.sleep(0.02)

    def _flush_now_and_then(self) -> None:
        while True:
            gevent.sleep(FLUSH_EVERY_S)
            self._flush()

    def _flush(self) -> None:
        try:
            self._writer.flush()
            if self._outbox is not None:
                self._outbox.send(self._send_part)
        except OSError as error:
            self._unwritten = f"rows could not be written to {self.plan.folder}: {error}"
            logger.error("kvswarm: %s", self._unwritten)
        else:
            self._unwritten = ""


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
