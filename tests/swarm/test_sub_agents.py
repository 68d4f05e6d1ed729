"""Sub-agents run at the same time as each other, their parent waits where it has to, and nothing outlives its user."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

import gevent
import pytest
from gevent import GreenletExit
from gevent.event import AsyncResult, Event

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.swarm.player import Player
from harness.workload.content import content_id
from harness.workload.session import Message, Segment, Session, SubAgent, Turn
from harness.workload.text import Renderer
from tests.swarm.fakes import LABELS, MS, URL, reply, small_lexicon, unsent
from tests.workload.samples import agent_loop

BEGAN_NS = 4_000 * MS


def session(number: int, turns: int, *sub_agents: SubAgent, think_s: float = 0.0) -> Session:
    """Each turn asks for 2 tokens, `think_s` after what it waits for."""
    made = []
    for index in range(turns):
        question = Message("user", (Segment("block", content_id("t", number, index), 20),))
        answer = Message("assistant", (Segment("reply", content_id("t", number, index, "reply"), 2),))
        made.append(Turn(index, question, 2, answer, think_s))
    return Session(number, "replay", (), tuple(made), keeps_history=False, sub_agents=sub_agents)


class Line:
    """One connection to the desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._answer: AsyncResult | None = None
        self.closings = 0

    def post(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str], on_reply: Callable[[Reply], None]
    ) -> Reply:
        assert self._answer is None, "two requests at a time over one connection"
        assert not self.closings
        self._answer = self._desk.take(headers["X-Request-Id"].removeprefix("r1-1-"))
        answer = unsent("cancelled", "")  # if it is killed while it waits
        try:
            answer = cast(Reply, self._answer.get())
        finally:
            self._answer = None
            on_reply(answer)
        return answer

    def cancel(self) -> None:
        if self._answer is not None:
            self._answer.set(unsent("cancelled", "by the end of the test"))

    def close(self) -> None:
        self.closings += 1


class Desk:
    """Keeps each request, named <session>-<turn>, until the test answers it."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.asked: list[str] = []
        self.on_connect: Callable[[], None] = lambda: None
        self._open: dict[str, AsyncResult] = {}

    def connect(self) -> TimedClient:
        self.on_connect()
        self.lines.append(Line(self))
        return cast(TimedClient, self.lines[-1])

    def take(self, name: str) -> AsyncResult:
        self.asked.append(name)
        self._open[name] = AsyncResult()
        return self._open[name]

    def answer(self, name: str, status: str = "ok", t_end: int | None = 1_060) -> list[str]:
        """Answer a request; `t_end` in ms. Returns what is asked thereupon, sorted."""
        before = len(self.asked)
        self.hand_over(name, status, t_end)
        settle()
        return sorted(self.asked[before:])

    def hand_over(self, name: str, status: str = "ok", t_end: int | None = 1_060) -> None:
        """Answer a request, and do not wait for what comes of it."""
        self._open[name].set(reply(status=status, t_end=None if t_end is None else t_end * MS))


class OpenGate:
    """Lets all requests pass until it is closed."""

    def __init__(self) -> None:
        self._closed = Event()
        self.waits_s: list[float] = []

    def close(self) -> None:
        self._closed.set()

    def closed(self) -> bool:
        return bool(self._closed.is_set())

    def wait(self, seconds: float) -> bool:
        self.waits_s.append(seconds)
        return self.closed()


class Stage:
    """A player in a greenlet of its own, as a user has it."""

    def __init__(self, *played: Session) -> None:
        self.desk, self.gate = Desk(), OpenGate()
        self.rows: list[dict[str, Any]] = []
        renderer, engine = Renderer(small_lexicon(), agent_loop()), OpenAIEngine(Target(url=URL), "m")
        self.player = Player(LABELS, 5, self.desk.connect, engine, renderer, False, self.gate, self._keep)
        self.user = gevent.spawn(self._play, played)
        settle()

    def _play(self, played: tuple[Session, ...]) -> None:
        for each in played:
            self.player.play(each, BEGAN_NS)

    def _keep(self, row: dict[str, Any], _: Reply) -> None:
        self.rows.append(row)

    def row(self, name: str) -> dict[str, Any]:
        (row,) = (row for row in self.rows if row["request_id"] == f"r1-1-{name}")
        return row

    @property
    def statuses(self) -> dict[str, str]:
        assert len(self.rows) == len({row["request_id"] for row in self.rows})
        return {row["request_id"].removeprefix("r1-1-"): row["status"] for row in self.rows}


def settle() -> None:
    """Let all greenlets go on until each waits for something."""
    for _ in range(20):
        gevent.sleep(0)


Begin = Callable[..., Stage]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """begin(session, ...) lets a user play these sessions; it is taken away after the test."""
    stages: list[Stage] = []

    def make(*played: Session) -> Stage:
        stages.append(Stage(*played))
        return stages[-1]

    yield make
    for stage in stages:
        stage.user.kill()


def test_sub_agents_run_at_the_same_time_and_their_parent_waits_for_all_of_them(begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 2), 0, 1), SubAgent(session(2, 1), 0, 1)))
    desk = stage.desk
    assert desk.asked == ["0-0"]
    assert desk.answer("0-0") == ["1-0", "2-0"]
    assert desk.answer("2-0") == []
    assert desk.answer("1-0") == ["1-1"]
    assert desk.answer("1-1") == ["0-1"]
    assert desk.answer("0-1") == []
    assert stage.user.ready()
    assert [row["user"] for row in stage.rows] == [5] * 5
    assert [row["warmth"] for row in stage.rows] == ["cold", "cold", "cold", "warm", "warm"]


def test_a_parent_waits_only_for_those_that_end_before_its_turn(begin: Begin) -> None:
    # The first is waited for by the third turn only, the second by nobody.
    stage = begin(session(0, 3, SubAgent(session(1, 1), 0, 2), SubAgent(session(2, 1), 0, None)), session(3, 1))
    desk = stage.desk
    assert desk.answer("0-0") == ["0-1", "1-0", "2-0"]
    assert desk.answer("0-1") == []
    assert desk.answer("1-0") == ["0-2"]
    assert desk.answer("0-2") == []
    # The user has its next session when the one in the background has ended, too.
    assert desk.answer("2-0") == ["3-0"]


def test_a_sub_agent_may_have_sub_agents_which_only_it_waits_for(begin: Begin) -> None:
    inner, behind = SubAgent(session(2, 1), 0, 1), SubAgent(session(3, 2), 0, None)
    stage = begin(session(0, 2, SubAgent(session(1, 2, inner, behind), 0, 1)))
    desk = stage.desk
    assert desk.answer("0-0") == ["1-0"]
    assert desk.answer("1-0") == ["2-0", "3-0"]
    assert desk.answer("2-0") == ["1-1"]
    assert desk.answer("1-1") == ["0-1"]
    assert desk.answer("0-1") == []
    assert desk.answer("3-0") == ["3-1"]
    assert not stage.user.ready()
    assert desk.answer("3-1") == []
    assert stage.user.ready()


def test_rows_name_the_request_after_whose_answer_their_session_began(begin: Begin) -> None:
    inner = SubAgent(session(2, 1), 1, None)
    stage = begin(session(0, 2, SubAgent(session(1, 2, inner), 1, None)))
    for name in ("0-0", "0-1", "1-0", "1-1", "2-0"):
        stage.desk.answer(name)
    parents = {row["request_id"]: row["parent_request"] for row in stage.rows}
    assert parents == {
        "r1-1-0-0": None,
        "r1-1-0-1": None,
        "r1-1-1-0": "r1-1-0-1",
        "r1-1-1-1": "r1-1-0-1",
        "r1-1-2-0": "r1-1-1-1",
    }


def test_a_request_is_due_so_long_after_the_last_of_all_that_it_waits_for(begin: Begin) -> None:
    sub_agents = [SubAgent(session(number, 1, think_s=0.25), 0, 1) for number in (1, 2)]
    stage = begin(session(0, 2, *sub_agents, think_s=0.5))
    stage.desk.answer("0-0", t_end=5_000)
    stage.desk.answer("1-0", t_end=9_000)
    stage.desk.answer("2-0", t_end=7_000)
    stage.desk.answer("0-1")
    assert [stage.row(name)["t_due"] for name in ("1-0", "2-0", "0-1")] == [5_250 * MS, 5_250 * MS, 9_500 * MS]
    assert {row["blocked_ms"] for row in stage.rows} == {0.0}


def test_what_a_request_with_a_time_of_its_own_waits_for_a_sub_agent_is_blocked(begin: Begin) -> None:
    late = session(0, 2, SubAgent(session(1, 1), 0, 1))
    first, second = late.turns
    timed = Turn(1, second.question, 2, second.reply, 0.0, due_s=1.5)
    stage = begin(Session(0, "replay", (), (first, timed), False, sub_agents=late.sub_agents))
    stage.desk.answer("0-0", t_end=5_000)
    stage.desk.answer("1-0", t_end=6_750)
    stage.desk.answer("0-1")
    row = stage.row("0-1")
    assert row["t_due"] == BEGAN_NS + 1_500 * MS
    assert row["blocked_ms"] == 1_250.0
    assert row["lag_ms"] == row["blocked_ms"] + row["late_ms"]


@pytest.mark.parametrize("status", ["http_error", "truncated"])
def test_a_parent_goes_on_as_soon_as_a_sub_agent_has_failed(status: str, begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 3), 0, 1)))
    stage.desk.answer("0-0")
    assert stage.desk.answer("1-0", status, t_end=3_000) == ["0-1"]
    stage.desk.answer("0-1")
    assert stage.statuses == {"0-0": "ok", "1-0": status, "0-1": "ok"}
    assert stage.row("0-1")["t_due"] == 3_000 * MS


def test_a_sub_agent_that_failed_without_an_end_ends_when_that_is_known(begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 1), 0, 1)))
    stage.desk.answer("0-0")
    before_ns = time.time_ns()
    assert stage.desk.answer("1-0", "timeout", t_end=None) == ["0-1"]
    stage.desk.answer("0-1")
    assert before_ns <= stage.row("0-1")["t_due"] <= time.time_ns()


def test_when_a_parent_fails_what_it_started_goes_on_and_nothing_more_is_started(begin: Begin) -> None:
    sub_agents = SubAgent(session(1, 2), 0, None), SubAgent(session(2, 1), 1, 2)
    stage = begin(session(0, 3, *sub_agents), session(3, 1))
    stage.desk.answer("0-0")
    assert stage.desk.answer("0-1", "http_error") == []
    assert stage.desk.answer("1-0") == ["1-1"]
    assert stage.desk.answer("1-1") == ["3-0"]
    assert stage.statuses == {"0-0": "ok", "0-1": "http_error", "1-0": "ok", "1-1": "ok"}


def test_each_session_has_a_connection_of_its_own_which_ends_with_it(begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 2), 0, 1), SubAgent(session(2, 2), 0, None)))
    stage.desk.answer("0-0")
    assert [line.closings for line in stage.desk.lines] == [0, 0, 0]
    stage.desk.answer("1-0")
    stage.desk.answer("1-1")
    assert [line.closings for line in stage.desk.lines] == [0, 1, 0]
    stage.player.close()
    assert [line.closings for line in stage.desk.lines] == [1, 1, 1]


def test_nothing_is_sent_once_the_gate_is_closed(begin: Begin) -> None:
    inner = SubAgent(session(2, 1), 0, 1)
    stage = begin(session(0, 2, SubAgent(session(1, 2, inner), 0, 1), SubAgent(session(3, 2), 0, None)))
    assert stage.desk.answer("0-0") == ["1-0", "3-0"]
    stage.gate.close()
    assert stage.desk.answer("1-0") == []
    assert not stage.user.ready()  # what is in flight is waited for
    assert stage.desk.answer("3-0") == []
    assert stage.user.ready()
    assert stage.statuses == {"0-0": "ok", "1-0": "ok", "3-0": "ok"}


def test_cancelling_ends_the_requests_of_all_agents(begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 2), 0, None), SubAgent(session(2, 1), 0, None)))
    stage.desk.answer("0-0")
    stage.gate.close()
    stage.player.cancel()
    settle()
    assert stage.user.ready()
    assert stage.statuses == {"0-0": "ok", "0-1": "cancelled", "1-0": "cancelled", "2-0": "cancelled"}


def three_deep() -> Session:
    """After two answers four requests are in flight: two of sub-agents, one of a sub-agent's, one of the parent."""
    inner = SubAgent(session(2, 1), 0, None)
    return session(0, 2, SubAgent(session(1, 2, inner), 0, None), SubAgent(session(3, 1), 0, None))


def test_a_user_that_is_taken_away_takes_its_sub_agents_with_it(begin: Begin) -> None:
    stage = begin(three_deep())
    assert stage.desk.answer("0-0") == ["0-1", "1-0", "3-0"]
    assert stage.desk.answer("1-0") == ["1-1", "2-0"]
    stage.user.kill()  # returns when it has ended
    lost = dict.fromkeys(("0-1", "1-1", "2-0", "3-0"), "cancelled")
    assert stage.statuses == {"0-0": "ok", "1-0": "ok", **lost}
    assert [line.closings for line in stage.desk.lines] == [0, 1, 1, 1]
    stage.player.close()
    settle()
    assert len(stage.desk.asked) == len(stage.rows) == 6


def test_a_user_is_taken_away_while_it_waits_for_its_sub_agents(begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 2), 0, 1)))
    stage.desk.answer("0-0")
    stage.user.kill()
    assert stage.statuses == {"0-0": "ok", "1-0": "cancelled"}
    assert stage.desk.asked == ["0-0", "1-0"]


def test_a_sub_agent_that_had_no_time_to_begin_never_begins(begin: Begin) -> None:
    stage = begin(session(0, 2, SubAgent(session(1, 2), 0, 1)))
    stage.desk.on_connect = lambda: stage.user.kill(block=False)
    assert stage.desk.answer("0-0") == []
    assert len(stage.desk.lines) == 2
    assert stage.user.ready()
    assert stage.statuses == {"0-0": "ok"}


def test_a_user_that_is_taken_away_twice_leaves_nothing_behind(begin: Begin) -> None:
    stage = begin(three_deep())
    stage.desk.answer("0-0")
    for _ in range(2):
        stage.user.kill(block=False)
    with suppress(GreenletExit):
        stage.user.join()
    settle()
    assert stage.statuses == {"0-0": "ok", "0-1": "cancelled", "1-0": "cancelled", "3-0": "cancelled"}
