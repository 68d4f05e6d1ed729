"""The workers of one leg of a run, as the master sees them: who they are, how their clocks go, who is lost or late."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from harness.swarm.clock_offset import ClockOffset
from harness.swarm.handshake import Credentials
from harness.swarm.presence import Presence
from harness.swarm.roll_call import RollCall
from harness.workload.scenario import Scenario

logger = logging.getLogger(__name__)

WORTH_A_WORD_NS = 1_000_000


class Partners:
    """All by Locust's client id."""

    def __init__(self, runner: Any, roll_call: RollCall) -> None:
        self.planned: Mapping[str, int] = {}
        """Numbers of the workers that take part."""
        self.credentials: Mapping[str, Credentials] = {}
        self.clocks_before: Mapping[str, ClockOffset] = {}
        self.clocks_after: Mapping[str, ClockOffset] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []
        self._runner = runner
        self._roll_call = roll_call
        self._presence = Presence(runner, {})
        self._late: set[str] = set()

    def call(self, scenario: Scenario) -> Mapping[str, int]:
        """Ask those that are connected, refuse those that cannot take part; returns the numbers of the others."""
        ready = sorted((node.id for node in self._runner.clients.ready), key=self._runner.get_worker_index)
        roll = self._roll_call.call(ready, scenario)
        self.notes += roll.refused
        self.credentials = roll.present
        self.clocks_before = self._roll_call.clock_offsets(roll.present)
        self.planned = {client_id: number for number, client_id in enumerate(roll.present)}
        self._presence = Presence(self._runner, self.planned)
        return self.planned

    def clock_ahead_ns(self, client_id: str) -> int:
        """By how much its clock is known to be ahead of ours."""
        clock = self.clocks_before.get(client_id)
        return 0 if clock is None else clock.shift_ns

    @property
    def lost(self) -> Collection[str]:
        return self._presence.lost

    def look(self, done: Collection[str]) -> None:
        """Notice workers, other than those that are `done`, that are lost: call it every now and then."""
        for client_id in self._presence.look(done):
            self.problems.append(self._loss(client_id))
            logger.error("kvswarm: %s; the run will be marked incomplete", self.problems[-1])

    def notice_late_ones(self) -> None:
        """Those that came after the call."""
        for node in self._runner.clients.all:
            if node.id not in self.planned and node.id not in self._late:
                self._late.add(node.id)
                self.notes.append(f"worker {node.id} came during the run: it has no part in it, and waits for the next")
                logger.warning("kvswarm: %s", self.notes[-1])

    def _loss(self, client_id: str) -> str:
        fate = self._presence.lost[client_id]
        return f"worker {self.planned[client_id]} was lost during the run ({fate}); its last rows are missing"

    def on_drained(self, client_id: str) -> None:
        """Its last word came: if it was given up, that was too early."""
        if client_id in self._presence.lost:
            self.problems.remove(self._loss(client_id))
            del self._presence.lost[client_id]

    def end(self, drained: Collection[str]) -> None:
        """The leg is over: look at the clocks again."""
        self.notes += self._presence.notes
        self.clocks_after = self._roll_call.clock_offsets(drained)
        for client_id, number in self.planned.items():
            self._judge_clock(number, self.clocks_before.get(client_id), self.clocks_after.get(client_id))

    def _judge_clock(self, number: int, before: ClockOffset | None, after: ClockOffset | None) -> None:
        if before is None:
            self.notes.append(f"the clock of worker {number} could not be compared with the master's before the load")
            return
        if abs(before.shift_ns) > WORTH_A_WORD_NS:
            self.notes.append(
                f"the clock of worker {number} was {_ms(before.shift_ns)} ahead of the master's "
                f"(± {_ms(before.error_ns)}); the times in its rows are corrected by that"
            )
        if after is not None and abs(before.moved_ns(after)) > WORTH_A_WORD_NS:
            self.notes.append(
                f"the clock of worker {number} moved by at least {_ms(before.moved_ns(after))} against the master's "
                "during the run: times of different workers compare no better than that"
            )


def _ms(time_ns: int) -> str:
    return f"{time_ns / 1e6:.2f} ms"
