"""The part of a run that sends requests: in each Locust worker, or in the one process of a local run."""

from __future__ import annotations

import gc
import itertools
import logging
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import gevent
from gevent.event import Event

from harness.client.reply import Reply
from harness.record.news import RequestNews
from harness.record.run_directory import is_there
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.swarm.delivery import Delivery
from harness.swarm.health import HealthWatch, cpu_s
from harness.swarm.lane import Lane
from harness.swarm.live import LiveFigures
from harness.swarm.open_loop import OpenLoop
from harness.swarm.plan import FLUSH_EVERY_S, Drained, Plan
from harness.swarm.player import Player
from harness.swarm.ramp import RAMP, Ramp
from harness.workload.scenario import Scenario
from harness.workload.schedule import Arrival

logger = logging.getLogger(__name__)


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
        targets = {lane.target["name"]: lane.number for lane in plan.lanes}
        self._news = RequestNews(targets, plan.clock_ahead_ns) if plan.tells_requests else None
        self._fire_request = fire_request
        scenario = Scenario.from_json(plan.scenario)
        self._lanes = [Lane(plan, lane, scenario) for lane in plan.lanes]
        self._users = itertools.count()
        self._players: dict[Player, Lane] = {}
        self._in_flight = 0
        self._sessions: Counter[str] = Counter()
        """Those in flight, by target."""
        self._draining = Event()
        self._drained = Event()
        self._rows = self._failed = self._cancelled = 0
        self._cpu_s, self._wall_s = cpu_s(), time.monotonic()
        self._fresh: set[Player] = set()
        """Those that have played no session yet."""
        self.ramp = Ramp(plan.load)
        self._bad_row = self._unwritten = self._undelivered = self._reason = ""
        self.delivery = None if is_there(plan.folder, plan.run_id) else Delivery(plan.run_id, send_part)
        """None: parts are written by this worker itself."""
        store = plan.folder if self.delivery is None else self.delivery.outbox
        self._writer = PartWriter(
            store,
            f"requests/part-{plan.leg}-{plan.worker:04d}",
            REQUESTS,
            in_thread=gevent.get_hub().threadpool.apply,
            clock_ahead_ns=plan.clock_ahead_ns,
        )
        self._flusher = gevent.spawn(self._flush_now_and_then)
        self._loops = (
            {
                lane: OpenLoop(lane.arrivals(), plan.load.start_ns, partial(self._refuse, lane), self._draining)
                for lane in self._lanes
            }
            if plan.load.arrivals is not None
            else {}
        )
        """Empty: a closed loop."""
        # What is there now stays, so the collector need not look at it again and again while streams wait.
        gc.collect()
        gc.freeze()
        self._health = HealthWatch(plan.run_id, plan.leg, plan.worker, store, self._gauges, plan.clock_ahead_ns)

    def _gauges(self) -> dict[str, int]:
        return {
            "live_sessions": self._in_flight,
            "streams": sum([player.streams for player in self._players]),
            "rows_waiting": self._writer.unwritten_rows,
        }

    def report(self) -> dict[str, Any]:
        """What the page shows of this worker, since the last call: plain values for `Board.take`."""
        return {
            "run_id": self.plan.run_id,
            "leg": self.plan.leg,
            "worker": self.plan.worker,
            "figures": self.live.take(),
            "sessions": dict(self._sessions),
            "health": self._health.take_recent(),
            "news": None if self._news is None else self._news.take(self._told_until_ns()),
        }

    def _told_until_ns(self) -> int:
        """All that was sent before has ended."""
        oldest_ns = [player.oldest_ns for player in self._players if player.oldest_ns is not None]
        return min([time.time_ns(), *oldest_ns])

    # --- what a user does ----------------------------------------------------------------------

    def new_player(self) -> Player:
        """A player with connections of its own, for one user."""
        user = next(self._users)
        # Dealt out so that over all workers each target (and each slot) gets as many users as any other, or one more.
        lane = self._lanes[(user + self.plan.worker) % len(self._lanes)]
        player = lane.player(user, gate=self, record=self._record)
        self._players[player] = lane
        self._fresh.add(player)
        return player

    def retire(self, player: Player) -> None:
        """The user of `player` has stopped."""
        player.close()
        self._players.pop(player, None)
        self._fresh.discard(player)

    def play_one(self, player: Player) -> None:
        """Play a session of this worker, with its sub-agents, on the player's target.

        In a closed loop it is the next one; in an open loop the player waits for one that arrives, and returns without
        when the run drains.
        """
        lane = self._players[player]
        arrival = None
        if self._loops and (arrival := self._loops[lane].wait()) is None:
            return
        if arrival is not None and self._is_full:
            self._record(*lane.refused(arrival, "the master does not take the rows, and no more can be kept"))
            return
        is_first = player in self._fresh
        self._fresh.discard(player)
        self._in_flight += 1
        self._sessions[lane.target] += 1
        try:
            if arrival is None:
                lane.play_next(player, under_way=is_first and self.plan.load.stagger)
            else:
                lane.play(player, arrival)
        finally:
            self._in_flight -= 1
            self._sessions[lane.target] -= 1

    def _refuse(self, lane: Lane, arrival: Arrival) -> None:
        seats = list(self._players.values()).count(lane)
        self._record(*lane.refused(arrival, f"all {seats} seats of this worker were taken"))

    @property
    def live_sessions(self) -> int:
        """Being played now, sub-agents not counted."""
        return self._in_flight

    def closed(self) -> bool:
        """Also while the master does not take the rows: they would have nowhere to go."""
        return bool(self._draining.is_set()) or self._is_full

    @property
    def _is_full(self) -> bool:
        return self.delivery is not None and self.delivery.outbox.is_full

    def wait(self, seconds: float) -> bool:
        if seconds > 0:
            self._draining.wait(seconds)
        return self.closed()

    def _record(self, row: dict[str, Any], reply: Reply) -> None:
        if not self.ramp.is_over(row["t_due"] if row["t_send"] is None else row["t_send"]):
            row["phase"] = RAMP
        try:
            self._writer.add(row)
        except (ValueError, TypeError, KeyError) as error:
            self._bad_row = self._bad_row or f"a row could not be written: {error}"
            raise
        self._rows += 1
        self.live.add(row)
        if self._news is not None:
            self._news.add(row)
        failed = reply.status != "ok"
        self._failed += failed
        self._cancelled += reply.status == "cancelled"
        if reply.is_socket_error:
            self._health.count_socket_error()
        self._fire_request(
            request_type="POST",
            name=f"{row['kind']} {row['warmth']}",
            response_time=None if reply.status == "refused" else reply.e2e_ms or 0.0,
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
            for loop in self._loops.values():
                loop.close()
            self.cut_drain_short()
            self._wait_for_requests(5.0)
            for player in self._players:
                player.close()
            self._flusher.kill()
            self._health.close()
            self._flush()
            self._deliver()
            self._cpu_s, self._wall_s = cpu_s() - self._cpu_s, time.monotonic() - self._wall_s
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
            problem=self._bad_row or self._unwritten or self._undelivered or self._loop_problem,
            figures=self.live.take(),
            health_parts=[list(part) for part in self._health.parts],
        )

    @property
    def _loop_problem(self) -> str:
        return next((loop.problem for loop in self._loops.values() if loop.problem), "")

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

    def _deliver(self) -> None:
        if self.delivery is None:
            return
        self._undelivered = self.delivery.finish()
        if self._unwritten and not self._undelivered:  # there was no room for the last rows
            self._flush()
            self._undelivered = self.delivery.finish()
        self.delivery.close()

    def _flush(self) -> None:
        try:
            self._writer.flush()
            self._health.flush()
        except OSError as error:
            self._unwritten = f"rows could not be written to {self.plan.folder}: {error}"
            logger.error("kvswarm: %s", self._unwritten)
        else:
            self._unwritten = ""
