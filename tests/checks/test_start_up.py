"""The check against servers whose caches are known to the token, over real connections."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from harness.checks.prompts import SCENARIO
from harness.checks.sender import Sent
from harness.checks.start_up import check_start_up
from harness.client.timed import TimedClient
from harness.collector import open_collector
from harness.engines.base import Identity
from harness.engines.target import Target
from harness.errors import TargetError
from harness.record.manifest import StartUpCheck
from harness.workload.learning import learn
from harness.workload.lexicon import Lexicon
from tests.checks.toy_server import ToyEngine, ToyServer

Serve = Callable[[ToyServer], str]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy server's counter is right at once."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.0)


class Checking:
    """The toy adapter at a toy server, and what the check sent."""

    def __init__(self, root: str, metrics: tuple[str, ...] | None = None) -> None:
        pages = (f"{root}/metrics",) if metrics is None else metrics
        self.target = Target(url=f"{root}/v1", metrics_urls=pages)
        self.engine = ToyEngine(self.target, "toy")
        self.sent: list[Sent] = []

    def lexicon(self) -> Lexicon:
        return learn(lambda text: len(text.split()), self.engine.count_chat, self.engine.chat_tokens, SCENARIO)

    def run(
        self,
        granularity: int | None = 16,
        context: int | None = 8192,
        lexicon: Lexicon | None = None,
        label: str = "r1-check",
    ) -> StartUpCheck:
        identity = Identity("toy", "toy", context_tokens=context, granularity_tokens=granularity)
        with closing(TimedClient(self.target, self.engine.read_event)) as client:
            collector = open_collector(self.target, lambda rows: None)
            return check_start_up(
                client, self.engine, identity, lexicon or self.lexicon(), label, collector, self.sent.append
            )


def counts(check: StartUpCheck) -> dict[str, tuple[int | None, int | None, int | None]]:
    """Expected, by the answer, by the counter."""
    return {
        probe.name: (probe.expected_cached_tokens, probe.usage_cached_tokens, probe.counter_cached_tokens)
        for probe in check.probes
    }


@pytest.mark.parametrize(
    ("block", "cold", "repeat", "half"),
    [(1, 2, 1023, 511), (16, 0, 1008, 496), (48, 0, 1008, 480), (256, 0, 768, 256)],
)
def test_works_to_the_token(serve: Serve, block: int, cold: int, repeat: int, half: int) -> None:
    """Token by token the cold prompt hits the template's head and the opener, which every chat begins with."""
    check = Checking(serve(ToyServer(block))).run(granularity=block)
    assert counts(check) == {"cold": (0, cold, cold), "repeat": (repeat,) * 3, "half": (half,) * 3}
    assert (check.verdict, check.granularity_tokens) == ("works", block)
    assert [probe.prompt_tokens for probe in check.probes] == [1024] * 3
    assert all(probe.ttft_ms is not None for probe in check.probes)


def test_a_second_check_begins_cold(serve: Serve) -> None:
    root = serve(ToyServer(1))
    first, second = Checking(root).run(1, label="one"), Checking(root).run(1, label="two")
    assert (first.verdict, second.verdict) == ("works", "works")


def test_what_is_sent_is_recorded(serve: Serve) -> None:
    checking = Checking(serve(ToyServer(16)))
    checking.run()
    assert [(sent.name, sent.request_id) for sent in checking.sent] == [
        ("cold", "r1-check-cold"),
        ("repeat", "r1-check-repeat"),
        ("half", "r1-check-half"),
    ]
    for sent in checking.sent:
        assert sum(segment.tokens for segment in sent.path) == sent.reply.prompt_tokens == 1024
        assert sent.reply.t_send is not None
        assert sent.due_ns <= sent.reply.t_send
        assert sent.output_tokens == 8


def test_blocks_that_the_engine_does_not_tell_are_found(serve: Serve) -> None:
    check = Checking(serve(ToyServer(32))).run(granularity=None)
    assert counts(check) == {"cold": (0, 0, 0), "repeat": (None, 992, 992), "half": (None, 480, 480)}
    assert (check.verdict, check.granularity_tokens) == ("works", 32)


def test_one_more_prompt_where_two_leave_the_size_open(serve: Serve) -> None:
    assert list(counts(Checking(serve(ToyServer(20))).run(granularity=None))) == ["cold", "repeat", "half"]
    check = Checking(serve(ToyServer(80))).run(granularity=None)  # 960 and 480 fit 60, 80, 96, 120, ...
    assert counts(check)["part"] == (None, 400, 400)
    assert check.granularity_tokens == 80


def test_blocks_longer_than_usual_get_longer_prompts(serve: Serve) -> None:
    check = Checking(serve(ToyServer(784))).run(granularity=784)
    assert counts(check) == {"cold": (0, 0, 0), "repeat": (3920,) * 3, "half": (1568,) * 3}
    assert check.granularity_tokens == 784


def test_larger_blocks_than_told_are_named(serve: Serve) -> None:
    check = Checking(serve(ToyServer(784))).run(granularity=16)
    assert (check.verdict, check.granularity_tokens) == ("differs", 784)
    assert counts(check)["repeat"] == (1008, 784, 784)


def test_a_lost_block(serve: Serve) -> None:
    check = Checking(serve(ToyServer(16, loses=16))).run()
    assert check.verdict == "differs"
    assert "a block short" in check.sentence


def test_whole_prompts_only(serve: Serve) -> None:
    check = Checking(serve(ToyServer(1, whole_only=True))).run(granularity=1)
    assert check.verdict == "differs"
    assert "sliding windows" in check.sentence


def test_caching_off(serve: Serve) -> None:
    check = Checking(serve(ToyServer(caches=False))).run()
    assert check.verdict == "caching-off"
    assert counts(check) == {
        "cold": (0, 0, 0),
        "repeat": (1008, 0, 0),
        "half": (496, 0, 0),
        "ids_cold": (0, 0, 0),
        "ids_repeat": (1008, 0, 0),
    }


def test_reporting_off(serve: Serve) -> None:
    check = Checking(serve(ToyServer(16, reports=False))).run()
    assert check.verdict == "reporting-off"
    assert counts(check)["repeat"] == (1008, None, 1008)
    assert "start toy with --report" in check.sentence


def test_neither_reports_nor_counters(serve: Serve) -> None:
    """The clock alone is left, and what it happens to show decides."""
    check = Checking(serve(ToyServer(16, reports=False)), metrics=()).run()
    assert {probe.counter_cached_tokens for probe in check.probes} == {None}
    assert {probe.usage_cached_tokens for probe in check.probes} == {None}
    cold, repeat, half = (probe.ttft_ms or 0.0 for probe in check.probes)
    much_sooner = cold >= 3 * repeat and half >= 1.5 * repeat
    assert check.verdict == ("reporting-off" if much_sooner else "unclear")
    assert "start toy with --report" in check.sentence


def test_a_clock_in_the_template(serve: Serve) -> None:
    """Each chat begins with another number, so nothing behind it is hit; the same tokens as ids are."""
    checking = Checking(serve(ToyServer(16, clock=True)))
    check = checking.run(lexicon=replace(checking.lexicon(), exact=False))
    assert check.verdict == "template-drift"
    assert counts(check)["repeat"] == (1024, 0, 0)  # the number is one token more than planned
    assert counts(check)["ids_cold"] == (0, 0, 0)
    assert counts(check)["ids_repeat"] == (1008, 1008, 1008)
    assert [sent.name for sent in checking.sent[-2:]] == ["ids_cold", "ids_repeat"]


def test_a_template_of_changing_length(serve: Serve) -> None:
    toy = ToyServer(16)
    checking = Checking(serve(toy))
    known = checking.lexicon()
    toy.unsteady = True
    check = checking.run(lexicon=known)
    assert check.verdict == "template-drift"
    assert "prompt tokens" in check.sentence


def test_several_replicas_make_a_missed_repeat_unclear(serve: Serve) -> None:
    root = serve(ToyServer(caches=False))
    other = serve(ToyServer())
    check = Checking(root, metrics=(f"{root}/metrics", f"{other}/metrics")).run()
    assert check.verdict == "unclear"
    assert "2 replicas" in check.sentence


def test_a_context_without_room_sends_nothing(serve: Serve) -> None:
    checking = Checking(serve(ToyServer()))
    check = checking.run(context=30)
    assert (check.verdict, check.probes, checking.sent) == ("unclear", (), [])
    assert "context of 30 tokens" in check.sentence


@pytest.mark.parametrize("number", [0, 1])
def test_a_request_that_fails_ends_the_check_and_is_recorded(serve: Serve, number: int) -> None:
    checking = Checking(serve(ToyServer(fails_at=number)))
    with pytest.raises(TargetError, match=r"start-up check to .* failed \(http_error\): out of memory"):
        checking.run()
    assert [sent.reply.status for sent in checking.sent] == ["ok"] * number + ["http_error"]
