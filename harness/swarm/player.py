"""One user's part: play a session and its sub-agents turn by turn, and hand over a row for every request sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gevent import Greenlet
from gevent.pool import Group

from harness.client.reply import Reply
from harness.client.row import Asked, Labels, request_row, warmth
from harness.client.timed import TimedClient
from harness.engines.base import Engine
from harness.workload.content import live_answer_id
from harness.workload.session import Message, Segment, Session, SubAgent
from harness.workload.text import Renderer

FAILURE_PAUSE_S = 1.0
"""Pause after a failed request: a server that refuses at once must not be asked in a tight loop."""


def request_id_of(labels: Labels, session: Session, index: int) -> str:
    """Of turn number `index`."""
    return f"{labels.run_id}-{labels.target_number}-{session.number}-{index}"


class Gate(Protocol):
    """Says when to stop: `wait` sleeps and returns True as soon as no further request may be sent."""

    def closed(self) -> bool: ...

    def wait(self, seconds: float) -> bool: ...


@dataclass(slots=True)
class Playing:
    """A session under way."""

    session: Session
    client: TimedClient
    """Its own connection, as it may run at the same time as others of its user."""
    free_ns: int
    """When what its next request waits for ended, as far as it has."""
    parent_request: str | None = None
    """request_id of the request after whose answer it began; None: no session started it."""
    replies: list[Message] = field(default_factory=list)
    """To its turns so far."""


@dataclass(frozen=True, slots=True)
class _Started:
    """A sub-agent that was started."""

    plan: SubAgent
    playing: Playing
    greenlet: Greenlet


class Player:
    """Plays sessions one after the other, and the sub-agents of each at the same time as it.

    `record(row, reply)` is called exactly once for every request sent, even if the greenlet is killed while it waits.
    """

    def __init__(
        self,
        labels: Labels,
        user: int,
        connect: Callable[[], TimedClient],
        engine: Engine,
        renderer: Renderer,
        live_replies: bool,
        gate: Gate,
        record: Callable[[dict[str, Any], Reply], None],
        slot: int | None = None,
    ) -> None:
        """`connect` makes a client with a connection of its own. `slot`: the server's, that all requests are to go to;
        None: it chooses."""
        self._labels = labels
        self._user = user
        self._connect = connect
        self._client = connect()
        self._clients = {self._client}
        self._sub_agents = Group()
        self._engine = engine
        self._renderer = renderer
        self._live_replies = live_replies
        self._gate = gate
        self._record = record
        self._slot = slot
        self._under_way: dict[TimedClient, int] = {}
        """When each request under way was about to be sent, by its connection."""

    def play(self, session: Session, origin_ns: int, first_turn: int = 0, due_ns: int | None = None) -> None:
        """Send the turns of `session` in order, and those of its sub-agents; returns when all of them have ended.

        `origin_ns` is what the session's own times count from. Turns before `first_turn` are in its prompt, with their
        scripted replies. `due_ns`: when that turn is due, as an open loop says; None: the session begins now, and if it
        fails, a pause follows.

        A failed turn ends its own session, since the next one would build on its answer. Where another session waits
        for that end, it goes on. A greenlet that is killed in here takes those of the sub-agents with it.
        """
        first = session.turns[first_turn]
        free_ns = time.time_ns() if due_ns is None else due_ns - round(first.think_time_s * 1e9)
        replies = [turn.reply for turn in session.turns[:first_turn]]
        try:
            went_well = self._take_turns(Playing(session, self._client, free_ns, replies=replies), origin_ns)
            self._sub_agents.join()
        finally:
            self._sub_agents.kill()
        if not went_well and due_ns is None:
            self._gate.wait(FAILURE_PAUSE_S)

    @property
    def streams(self) -> int:
        """Requests under way."""
        return sum([client.is_busy for client in self._clients])

    @property
    def oldest_ns(self) -> int | None:
        """A time before which no request under way was sent; None: none is under way."""
        return min(self._under_way.values(), default=None)

    def cancel(self) -> None:
        """From another greenlet: end all requests under way; each is recorded as cancelled."""
        for client in tuple(self._clients):  # those of sub-agents that end are taken out meanwhile
            client.cancel()

    def close(self) -> None:
        """Close all connections."""
        for client in tuple(self._clients):
            client.close()

    def _take_turns(self, playing: Playing, origin_ns: int) -> bool:
        """Whether all turns were answered."""
        started: list[_Started] = []
        for turn in playing.session.turns[len(playing.replies) :]:
            for sub_agent in started:
                if sub_agent.plan.before == turn.index:
                    sub_agent.greenlet.join()
                    playing.free_ns = max(playing.free_ns, sub_agent.playing.free_ns)
            due_ns = (
                playing.free_ns + round(turn.think_time_s * 1e9)
                if turn.due_s is None
                else origin_ns + round(turn.due_s * 1e9)
            )
            if self._gate.wait((due_ns - time.time_ns()) / 1e9):
                return False
            reply = self.send(playing, turn.index, due_ns)
            playing.free_ns = reply.t_end or time.time_ns()
            if reply.status != "ok":
                return False
            playing.replies.append(self._live(turn.index, playing.session, reply) if self._live_replies else turn.reply)
            for plan in playing.session.sub_agents:
                if plan.after == turn.index:
                    started.append(self._start(plan, playing, origin_ns))
        return True

    def _start(self, plan: SubAgent, parent: Playing, origin_ns: int) -> _Started:
        spawned_by = request_id_of(self._labels, parent.session, plan.after)
        playing = Playing(plan.session, self._connect(), parent.free_ns, spawned_by)
        return _Started(plan, playing, self._sub_agents.spawn(self._play_sub_agent, playing, origin_ns))

    def _play_sub_agent(self, playing: Playing, origin_ns: int) -> None:
        self._clients.add(playing.client)
        try:
            self._take_turns(playing, origin_ns)
        finally:
            self._clients.remove(playing.client)
            playing.client.close()

    def send(self, playing: Playing, index: int, due_ns: int) -> Reply:
        """Send one turn and record its row."""
        session, turn = playing.session, playing.session.turns[index]
        messages = session.prompt(index, playing.replies)
        request_id = request_id_of(self._labels, session, index)
        payload = self._engine.chat_payload(
            self._renderer.chat(messages), turn.output_tokens, cache_salt=self._labels.cache_salt, slot=self._slot
        )

        def on_reply(reply: Reply) -> None:
            asked = Asked(
                request_id=request_id,
                due_ns=due_ns,
                free_ns=playing.free_ns,
                path=self._renderer.path(messages),
                output_tokens=turn.output_tokens,
                user=self._user,
                session=session.number,
                turn=turn.index,
                warmth=warmth(turn),
                slot=self._slot,
                fault=session.fault(turn.index),
                tenant=session.tenant,
                parent_request=playing.parent_request,
            )
            self._record(request_row(self._labels, asked, reply), reply)

        headers = {"X-Request-Id": request_id, **self._engine.request_headers}
        self._under_way[playing.client] = time.time_ns()
        try:
            return playing.client.post("/chat/completions", payload, headers, on_reply)
        finally:
            del self._under_way[playing.client]

    def _live(self, index: int, session: Session, reply: Reply) -> Message:
        """What the engine said, as a message; its length is what the engine counted."""
        said = Segment(
            kind="reply",
            content_id=live_answer_id(self._labels.run_id, self._labels.target_number, session.number, index),
            tokens=reply.output_tokens or 0,
            text=reply.text,
        )
        return Message("assistant", (said,))
