"""A user's part: each turn's prompt follows from the answers before it, and nothing is sent once the gate is closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import pytest

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.swarm.player import FAILURE_PAUSE_S, Player
from harness.workload.session import Session
from harness.workload.text import Renderer
from harness.workload.workload import Workload
from tests.swarm.fakes import LABELS, MS, URL, FakeClient, reply, small_lexicon, unsent
from tests.workload.samples import agent_loop

SCENARIO = agent_loop(steps=3, output_tokens=2)
BEGAN_NS = 4_000 * MS
RENDERER = Renderer(small_lexicon(), SCENARIO)


class FakeGate:
    """Lets `admitted` requests pass; keeps how long it was asked to wait."""

    def __init__(self, admitted: int) -> None:
        self._left = admitted
        self.waits_s: list[float] = []

    def closed(self) -> bool:
        return self._left <= 0

    def wait(self, seconds: float) -> bool:
        self.waits_s.append(seconds)
        self._left -= 1
        return self._left < 0


class Played:
    """What a player did with one session; `arrives`: (turn, when due) of its first request in an open loop."""

    def __init__(
        self,
        replies: Iterable[Reply],
        *,
        live: bool = False,
        admitted: int = 10,
        due_s: Sequence[float | None] = (),
        arrives: tuple[int, int] | None = None,
        **turn: Any,
    ) -> None:
        session: Session = Workload(SCENARIO.model_copy(update=turn), "n").session(0)
        due = dict(enumerate(due_s))
        turns = tuple(replace(each, due_s=due.get(each.index)) for each in session.turns)
        self.session = replace(session, turns=turns)
        self.client = FakeClient(replies)
        self.gate = FakeGate(admitted)
        self.rows: list[dict[str, Any]] = []
        engine = OpenAIEngine(Target(url=URL), "m")
        client = cast(TimedClient, self.client)
        player = Player(LABELS, 0, lambda: client, engine, RENDERER, live, self.gate, self.keep)
        player.play(self.session, BEGAN_NS, *(arrives or ()))

    def keep(self, row: dict[str, Any], _: Reply) -> None:
        self.rows.append(row)

    def prompts(self) -> list[list[dict[str, str]]]:
        return [body["messages"] for body in self.client.bodies]


def test_scripted_answers_are_the_scenarios() -> None:
    played = Played([reply(text="something else")] * 3)
    first, second, third = played.session.turns
    (opening,) = played.session.opening
    messages = (opening, first.question, first.reply, second.question, second.reply, third.question)
    assert played.prompts()[2] == RENDERER.chat(messages)
    assert [len(prompt) for prompt in played.prompts()] == [2, 4, 6]


def test_live_answers_are_the_engines_own() -> None:
    played = Played([reply(text=" yes"), reply(text="nein", output_tokens=5), reply()], live=True)
    last = played.prompts()[2]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert (last[2]["content"], last[4]["content"]) == (" yes", "nein")
    # Its length is what the engine counted, not what was asked for; it stands in the path of the next prompt.
    grown = [
        after["planned_prompt_tokens"] - before["planned_prompt_tokens"] for before, after in pairwise(played.rows)
    ]
    observations = [turn.question.tokens for turn in played.session.turns[1:]]
    assert grown == [10 + 2 + 1 + observations[0], 10 + 5 + 1 + observations[1]]  # two pieces of template, an opener


def test_each_prompt_begins_with_the_one_before() -> None:
    played = Played([reply()] * 3)
    for before, after in pairwise(played.prompts()):
        assert after[: len(before)] == before
    for row_before, row_after in pairwise(played.rows):
        without_tail = row_before["path"][:-1]
        assert row_after["path"][: len(without_tail)] == without_tail


def test_every_request_is_recorded_under_the_id_that_the_engine_saw() -> None:
    played = Played([reply()] * 3)
    sent = [headers["X-Request-Id"] for headers in played.client.headers]
    assert sent == ["r1-1-0-0", "r1-1-0-1", "r1-1-0-2"]
    assert [row["request_id"] for row in played.rows] == sent
    assert [row["warmth"] for row in played.rows] == ["cold", "warm", "warm"]
    assert [body["max_tokens"] for body in played.client.bodies] == [2, 2, 2]


@pytest.mark.parametrize("failed", [reply(status="truncated"), unsent("connect_error", "nothing listens")])
def test_a_failed_turn_ends_the_session_after_a_pause(failed: Reply) -> None:
    played = Played([reply(), failed, reply()])
    assert [row["status"] for row in played.rows] == ["ok", failed.status]
    assert played.gate.waits_s[-1] == FAILURE_PAUSE_S


def test_a_closed_gate_stops_it_before_the_next_request() -> None:
    assert Played([reply()] * 3, admitted=0).rows == []
    assert len(Played([reply()] * 3, admitted=2).rows) == 2


def test_a_turn_is_due_when_the_one_before_has_ended_and_the_pause_is_over() -> None:
    played = Played([reply(t_end=5_000 * MS), reply(t_end=7_000 * MS), reply()], think_time_s=1.5)
    assert [row["t_due"] for row in played.rows[1:]] == [6_500 * MS, 8_500 * MS]


def test_a_turn_with_a_time_of_its_own_is_due_then_and_waits_for_the_answer_before_it() -> None:
    late = [reply(t_end=5_000 * MS), reply(t_send=5_002 * MS, t_end=9_000 * MS), reply()]
    played = Played(late, due_s=[0.5, 0.75, 3.0])
    assert [row["t_due"] for row in played.rows] == [4_500 * MS, 4_750 * MS, 7_000 * MS]
    # The answer before it came 250 ms after it was due; then it took 2 ms more.
    assert (played.rows[1]["blocked_ms"], played.rows[1]["late_ms"], played.rows[1]["lag_ms"]) == (250.0, 2.0, 252.0)


def test_in_an_open_loop_the_first_turn_is_due_when_the_session_arrives() -> None:
    played = Played([reply(t_send=1_003 * MS)] * 3, arrives=(0, 1_000 * MS))
    first = played.rows[0]
    assert (first["t_due"], first["blocked_ms"], first["late_ms"], first["lag_ms"]) == (1_000 * MS, 0.0, 3.0, 3.0)
    # A failure is followed by no pause: who arrives next does not wait for it, and its seat is free.
    failed = Played([reply(status="truncated")], arrives=(0, 1_000 * MS))
    assert FAILURE_PAUSE_S not in failed.gate.waits_s


def test_a_session_that_is_under_way_goes_on_behind_its_scripted_replies() -> None:
    whole = Played([reply()] * 3)
    played = Played([reply(t_end=2_000 * MS), reply()], arrives=(1, 1_500 * MS), live=True, think_time_s=4.0)
    assert [row["turn"] for row in played.rows] == [1, 2]
    assert played.prompts()[0] == whole.prompts()[1]
    # The end of the pause before it is given; the pause after it counts from its own answer.
    assert [row["t_due"] for row in played.rows] == [1_500 * MS, 6_000 * MS]
    assert (played.rows[0]["blocked_ms"], played.rows[0]["late_ms"]) == (0.0, -500.0)  # sent at 1,000 ms, says the fake
