"""One user's part: play a session turn by turn over one connection, and hand over a row for every request sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.engines.base import Engine
from harness.swarm.row import Asked, Labels, request_row, warmth
from harness.workload.content import live_answer_id
from harness.workload.session import Message, Segment, Session
from harness.workload.text import Renderer

FAILURE_PAUSE_S = 1.0
"""Pause after a failed request: a server that refuses at once must not be asked in a tight loop."""


class Gate(Protocol):
    """Says when to stop: `wait` sleeps and returns True as soon as no further request may be sent."""

    def closed(self) -> bool: ...

    def wait(self, seconds: float) -> bool: ...


class Player:
    """Plays sessions one after the other.

    `record(row, reply)` is called exactly once for every request sent, even if the greenlet is killed while it waits.
    """

    def __init__(
        self,
        labels: Labels,
        user: int,
        client: TimedClient,
        engine: Engine,
        renderer: Renderer,
        live_replies: bool,
        gate: Gate,
        record: Callable[[dict[str, Any], Reply], None],
        slot: int | None = None,
    ) -> None:
        """`slot`: the server's, that all requests are to go to; None: it chooses."""
        self._labels = labels
        self._user = user
        self.client = client
        self._engine = engine
        self._renderer = renderer
        self._live_replies = live_replies
        self._gate = gate
        self._record = record
        self._slot = slot

    def play(self, session: Session, load_began_ns: int) -> None:
        """Send the turns of `session` in order; a failed turn ends it, since the next one would build on its answer."""
        replies: list[Message] = []
        free_ns = time.time_ns()
        for turn in session.turns:
            due_ns = (
                free_ns + round(turn.think_time_s * 1e9)
                if turn.due_s is None
                else load_began_ns + round(turn.due_s * 1e9)
            )
            if self._gate.wait((due_ns - time.time_ns()) / 1e9):
                return
            reply = self.send(session, turn.index, replies, due_ns, free_ns)
            if reply.status != "ok":
                self._gate.wait(FAILURE_PAUSE_S)
                return
            replies.append(self._live(turn.index, session, reply) if self._live_replies else turn.reply)
            free_ns = reply.t_end or time.time_ns()

    def send(self, session: Session, index: int, replies: list[Message], due_ns: int, free_ns: int) -> Reply:
        """Send one turn and record its row. `free_ns`: since when nothing before it keeps its user busy."""
        turn = session.turns[index]
        messages = session.prompt(index, replies)
        labels = self._labels
        request_id = f"{labels.run_id}-{labels.target_number}-{session.number}-{index}"
        payload = self._engine.chat_payload(
            self._renderer.chat(messages), turn.output_tokens, cache_salt=labels.cache_salt, slot=self._slot
        )

        def on_reply(reply: Reply) -> None:
            asked = Asked(
                request_id=request_id,
                due_ns=due_ns,
                free_ns=free_ns,
                path=self._renderer.path(messages),
                output_tokens=turn.output_tokens,
                user=self._user,
                session=session.number,
                turn=turn.index,
                warmth=warmth(turn),
                slot=self._slot,
                fault=session.fault(turn.index),
                tenant=session.tenant,
            )
            self._record(request_row(labels, asked, reply), reply)

        return self.client.post(
            "/chat/completions", payload, {"X-Request-Id": request_id, **self._engine.request_headers}, on_reply
        )

    def _live(self, index: int, session: Session, reply: Reply) -> Message:
        """What the engine said, as a message; its length is what the engine counted."""
        said = Segment(
            kind="reply",
            content_id=live_answer_id(self._labels.run_id, self._labels.target_number, session.number, index),
            tokens=reply.output_tokens or 0,
            text=reply.text,
        )
        return Message("assistant", (said,))
