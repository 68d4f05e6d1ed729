"""One worker's part of the load on one target: its sessions, and players for them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from harness.client.exchange import Exchange
from harness.client.reply import Reply, read_reply
from harness.client.row import Asked, Labels, request_row, warmth
from harness.client.timed import TimedClient
from harness.engines.detect import bind
from harness.engines.target import Target
from harness.swarm.plan import LanePlan, Plan
from harness.swarm.player import Gate, Player, request_id_of
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import Scenario
from harness.workload.schedule import Arrival, schedule
from harness.workload.session import Session
from harness.workload.stagger import Progress, progress_at_random
from harness.workload.text import Renderer
from harness.workload.workload import Workload


class Lane:
    """Of the sessions of the workload, worker, worker + workers, ... are this worker's."""

    def __init__(self, plan: Plan, lane: LanePlan, scenario: Scenario) -> None:
        """Raises InputError if the target's key is not set here, or the scenario cannot be played."""
        self._plan = plan
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
        self._numbers = itertools.count(plan.worker, plan.workers)
        self._slots = lane.slots

    @property
    def target(self) -> str:
        """Its name."""
        return self._target.name

    def player(self, user: int, gate: Gate, record: Callable[[dict[str, Any], Reply], None]) -> Player:
        connect = partial(TimedClient, self._target, self._engine.read_event)
        slot = None if self._slots is None else (self._plan.worker + user * self._plan.workers) % self._slots
        return Player(self._labels, user, connect, self._engine, self._renderer, self._live_replies, gate, record, slot)

    # --- closed loop ---------------------------------------------------------------------------

    def play_next(self, player: Player, under_way: bool) -> None:
        """Let `player` play the next session; `under_way`: one that it is in the midst of."""
        session, progress = self._next_under_way() if under_way else (self._next(), None)
        if progress is None:
            player.play(session, self._plan.load.start_ns)
        else:
            due_ns = time.time_ns() + round(progress.left_s * 1e9)
            player.play(session, self._plan.load.start_ns, progress.turn, due_ns)

    def _next(self) -> Session:
        return self._workload.session(next(self._numbers))

    def _next_under_way(self) -> tuple[Session, Progress]:
        longest, seed = self._workload.longest_session, self._workload.scenario.seed
        while True:
            session = self._next()
            progress = progress_at_random(session, longest, seed)
            if progress is not None:
                return session, progress

    # --- open loop -----------------------------------------------------------------------------

    def arrivals(self) -> Iterator[Arrival]:
        """This worker's, in their order."""
        load = self._plan.load
        assert load.arrivals is not None
        return schedule(self._workload, load.arrivals, load.rate, load.stagger, self._plan.worker, self._plan.workers)

    def play(self, player: Player, arrival: Arrival) -> None:
        player.play(arrival.session, self._ns(arrival.origin_s), arrival.turn, self._ns(arrival.due_s))

    def refused(self, arrival: Arrival, why: str) -> tuple[dict[str, Any], Reply]:
        """The row of an arrival that nobody could play, and its reply."""
        session, turn = arrival.session, arrival.session.turns[arrival.turn]
        due_ns = self._ns(arrival.due_s)
        asked = Asked(
            request_id=request_id_of(self._labels, session, turn.index),
            due_ns=due_ns,
            free_ns=due_ns,
            path=self._renderer.path(session.scripted_prompt(turn.index)),
            output_tokens=turn.output_tokens,
            session=session.number,
            turn=turn.index,
            warmth=warmth(turn),
            fault=session.fault(turn.index),
            tenant=session.tenant,
        )
        reply = replace(read_reply(Exchange(), self._engine.read_event), status="refused", error=why)
        return request_row(self._labels, asked, reply), reply

    def _ns(self, seconds: float) -> int:
        """Wall clock, of a time from the load's start."""
        return self._plan.load.start_ns + round(seconds * 1e9)
