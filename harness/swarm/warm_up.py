"""Requests before the measured ones: they warm the server up, and show at once whether it answers at all."""

from __future__ import annotations

import time
from typing import Any

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.errors import TargetError
from harness.record.schema import REQUESTS
from harness.record.writer import PartWriter
from harness.swarm.player import Player
from harness.swarm.prepare import Preparation
from harness.swarm.row import Labels
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


def warm_up(made: Preparation, folder: str) -> list[tuple[str, int]]:
    """Send the warm-up requests one by one, on prompts that share nothing with the load. Returns the parts written.

    Raises TargetError if one fails: the load would fail alike.
    """
    writer = PartWriter(folder, "requests/part-master", REQUESTS)
    labels = Labels(
        run_id=made.run_id,
        target=made.target.url,
        engine=made.identity.engine,
        model=made.identity.model,
        scenario=made.scenario.name,
        kind=made.scenario.kind,
        phase="warmup",
        worker=MASTER,
    )
    client = TimedClient(made.target, made.engine.read_event)
    renderer = Renderer(made.lexicon, made.scenario)

    def record(row: dict[str, Any], _: Reply) -> None:
        writer.add(row)

    player = Player(labels, 0, client, made.engine, renderer, False, _Open(), record)
    try:
        for number in range(made.options.warm_up_requests):
            reply = player.send(_session(made, number), 0, [], due_ns=time.time_ns())
            if reply.status != "ok":
                raise TargetError(
                    f"A warm-up request to {made.target.url} failed ({reply.status}): {reply.error}. "
                    "The load was not started."
                )
    finally:
        client.close()
        writer.flush()
    return writer.parts


def _session(made: Preparation, number: int) -> Session:
    *opening, question = unrelated_prompt(made.lexicon, f"{made.run_id}/warm-up/{number}", PROMPT_TOKENS)
    turn = Turn(0, question, OUTPUT_TOKENS, Message("assistant", ()), 0.0)
    return Session(-1 - number, made.scenario.kind, tuple(opening), (turn,), keeps_history=False)
