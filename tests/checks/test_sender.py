"""The sender: what each request made the engine's counter rise by, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from harness.checks.counter import cached_counter
from harness.checks.prompts import SCENARIO
from harness.checks.sender import Sender, Sent
from harness.client.timed import TimedClient
from harness.collector import open_collector
from harness.engines.target import Target
from harness.workload.content import content_id
from harness.workload.learning import learn
from harness.workload.session import Message, Segment
from tests.checks.toy_server import ToyEngine, ToyServer

Serve = Callable[[ToyServer], str]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy server's counter is right at once."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.0)


class Sending:
    """A sender at a toy server that does not report, and what it recorded."""

    def __init__(self, serve: Serve, toy: ToyServer, metrics: bool = True) -> None:
        root = serve(toy)
        target = Target(url=f"{root}/v1", metrics_urls=(f"{root}/metrics",) if metrics else ())
        engine = ToyEngine(target, "toy")
        lexicon = learn(lambda text: len(text.split()), engine.count_chat, engine.chat_tokens, SCENARIO)
        self.client = TimedClient(target, engine.read_event)
        self.recorded: list[Sent] = []
        count = cached_counter(open_collector(target, lambda rows: None), engine)
        self.sender = Sender(self.client, engine, lexicon, SCENARIO, "s", count, self.recorded.append)

    def close(self) -> None:
        self.client.close()


@pytest.fixture
def toy() -> ToyServer:
    return ToyServer(16, reports=False)


@pytest.fixture
def sending(serve: Serve, toy: ToyServer) -> Iterator[Sending]:
    with closing(Sending(serve, toy)) as made:
        yield made


def text(name: str, tokens: int) -> tuple[Message, ...]:
    return (Message("user", (Segment("user", content_id("s", name), tokens),)),)


def test_each_request_has_its_own_count(sending: Sending) -> None:
    counts = [sending.sender.chat(str(number), text("a", 100), 1).counter_cached_tokens for number in range(3)]
    assert counts == [0, 96, 96]


def test_what_was_not_counted_is_not_laid_to_the_next_one(sending: Sending) -> None:
    sending.sender.chat("cold", text("a", 100), 1, counted=False)
    again = sending.sender.chat("again", text("a", 100), 1, counted=False)
    assert again.counter_cached_tokens is None
    assert sending.sender.chat("fresh", text("b", 100), 1).counter_cached_tokens == 0


def test_a_request_that_fails_has_no_count_and_the_next_one_has_its_own(sending: Sending, toy: ToyServer) -> None:
    sending.sender.chat("cold", text("a", 100), 1)
    toy.fails_at = 1
    failed = sending.sender.chat("failed", text("a", 100), 1)
    assert (failed.is_ok, failed.counter_cached_tokens) == (False, None)
    assert sending.sender.chat("again", text("a", 100), 1).counter_cached_tokens == 96
    assert [sent.reply.status for sent in sending.recorded] == ["ok", "http_error", "ok"]


def test_a_count_that_falls_is_of_a_server_that_began_again(sending: Sending, toy: ToyServer) -> None:
    sending.sender.chat("cold", text("a", 100), 1)
    sending.sender.chat("again", text("a", 100), 1)
    toy.cached_total = -100
    assert sending.sender.chat("fresh", text("b", 100), 1).counter_cached_tokens is None
    assert sending.sender.chat("again", text("b", 100), 1).counter_cached_tokens == 96


def test_without_a_counter_nothing_is_known(serve: Serve, toy: ToyServer) -> None:
    with closing(Sending(serve, toy, metrics=False)) as sending:
        answer = sending.sender.chat("cold", text("a", 100), 1)
    assert (answer.cached_tokens, answer.counter_cached_tokens, answer.usage_cached_tokens) == (None, None, None)
    assert answer.prompt_tokens == answer.planned_tokens == 100 + len(["#", "<user>", "</user>", "<assistant>"])
