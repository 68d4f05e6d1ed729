"""The master's own requests to a target before the load: the start-up check, and a few that warm the server up."""

from __future__ import annotations

import time
from typing import Any

from harness.checks.sender import Sent
from harness.checks.start_up import check_start_up
from harness.client.reply import Reply
from harness.client.row import Asked, Labels, request_row
from harness.client.timed import TimedClient
from harness.errors import TargetError
from harness.record.manifest import StartUpCheck
from harness.record.news import RequestNews
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.swarm.player import Player, Playing
from harness.swarm.prepare import Lane, Preparation
from harness.swarm.server_metrics import ServerMetrics
from harness.workload.session import Message, Session, Turn
from harness.workload.text import Renderer, unrelated_prompt

MASTER = -1
"""The worker number of rows that the master sent."""
PROMPT_TOKENS = 256
OUTPUT_TOKENS = 8


class _Open:
    """A gate that never closes: the master's few requests are not drained."""

    def closed(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        return False


class FirstRequests:
    """Sends them over one connection, on prompts that share nothing with the load, and records each as a row."""

    def __init__(self, made: Preparation, lane: Lane, number: int, folder: str) -> None:
        """`number`: the target's within the run."""
        self._made = made
        self._lane = lane
        self._number = number
        self._client = TimedClient(lane.target, lane.engine.read_event)
        self.news = RequestNews({lane.target.name: number})
        self._writer = PartWriter(folder, f"requests/part-master-{number}", REQUESTS)

    def check(self, metrics: ServerMetrics) -> StartUpCheck:
        """What a cold, a repeated and a half-shared prompt show of the cache. Raises TargetError if one fails."""
        lane, labels = self._lane, self._labels("check")

        def record(sent: Sent) -> None:
            asked = Asked(sent.request_id, sent.due_ns, sent.due_ns, sent.path, sent.output_tokens)
            self._record(request_row(labels, asked, sent.reply), sent.reply)

        return check_start_up(
            self._client,
            lane.engine,
            lane.identity,
            lane.lexicon,
            f"{self._made.nonce}-{self._number}-check",
            metrics.collector,
            record,
        )

    def warm_up(self) -> None:
        """Send the warm-up requests one by one. Raises TargetError if one fails: the load would fail alike."""
        renderer = Renderer(self._lane.lexicon, self._made.scenario)
        player = Player(
            self._labels("warmup"), 0, lambda: self._client, self._lane.engine, renderer, False, _Open(), self._record
        )
        for number in range(self._made.options.warm_up_requests):
            now_ns = time.time_ns()
            reply = player.send(Playing(self._session(number), self._client, free_ns=now_ns), 0, due_ns=now_ns)
            if reply.status != "ok":
                raise TargetError(
                    f"A warm-up request to {self._lane.target.url} failed ({reply.status}): {reply.error}. "
                    "The load was not started."
                )

    def finish(self) -> list[tuple[str, int]]:
        """Close the connection and write the rows; returns the parts."""
        self._client.close()
        self._writer.flush()
        return self._writer.parts

    def _record(self, row: dict[str, Any], _: Reply) -> None:
        self._writer.add(row)
        self.news.add(row)

    def _labels(self, phase: str) -> Labels:
        made, lane = self._made, self._lane
        return Labels(
            run_id=made.run_id,
            target=lane.target.name,
            target_number=self._number,
            engine=lane.identity.engine,
            model=lane.identity.model,
            scenario=made.scenario.name,
            kind=None if phase == "check" else made.scenario.kind,
            phase=phase,
            worker=MASTER,
            cache_salt=None,
        )

    def _session(self, number: int) -> Session:
        tag = f"{self._made.nonce}/warm-up/{number}"
        *opening, question = unrelated_prompt(self._lane.lexicon, tag, PROMPT_TOKENS)
        turn = Turn(0, question, OUTPUT_TOKENS, Message("assistant", ()), 0.0)
        return Session(-1 - number, self._made.scenario.kind, tuple(opening), (turn,), keeps_history=False)
