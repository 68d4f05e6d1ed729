"""What the page draws of expected hits: bounded, from a process of its own, and with a reason where it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from harness.record.news import RequestNews
from harness.swarm import expectation
from harness.swarm.expectation import MOST_WINDOWS, WIDTH_NS, LiveExpectation, Windows
from tests.analysis.waterfall_rows import VLLM, sent, target_run


def news(*rows: dict[str, Any], until_ns: int, number: int = 1) -> dict[str, Any]:
    told = RequestNews({"t": 0})
    for row in rows:
        told.add(row)
    return {**told.take(until_ns), "number": number}


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., LiveExpectation]]:
    """begin(program) starts that Python text as the process; without, the real one."""
    begun: list[LiveExpectation] = []

    def start(program: str | None = None) -> LiveExpectation:
        if program is not None:
            monkeypatch.setattr(expectation, "COMMAND", (sys.executable, "-c", program))
        begun.append(LiveExpectation())
        record = target_run([], {**VLLM, "capacity_tokens": 320}).target.model_dump(mode="json")
        begun[-1].begin("r1", 0, [0], {0: record})
        return begun[-1]

    yield start
    for one in begun:
        one.close()


def wait_until(condition: Callable[[], object]) -> None:
    with gevent.Timeout(30):
        while not condition():
            gevent.sleep(0.01)


def test_a_process_of_its_own_says_what_to_expect(begin: Callable[..., LiveExpectation]) -> None:
    made = begin()
    rows = [sent([(1, 48)], at, session=at, cached_tokens=0) for at in (0, 10, WIDTH_NS)]
    made.take(0, news(*rows, until_ns=2 * WIDTH_NS))
    wait_until(lambda: made.of_target(0)["windows"])
    assert made.of_target(0) == {
        "windows": [
            {"start_s": 0.0, "end_s": 3.0, "prompt_tokens": 96, "expected": 32},
            {"start_s": 3.0, "end_s": 6.0, "prompt_tokens": 48, "expected": 32},
        ],
        "until_s": 6.0,
        "why": "",
    }
    made.take(0, news(until_ns=3 * WIDTH_NS, number=3))
    wait_until(lambda: made.of_target(0)["why"])
    assert made.of_target(0)["why"] == "a report of worker 0 was lost on its way"
    assert len(made.of_target(0)["windows"]) == 2


def test_a_process_that_dies_costs_the_line_only(begin: Callable[..., LiveExpectation]) -> None:
    made = begin("pass")
    wait_until(lambda: made.of_target(0)["why"])
    assert "has ended" in made.of_target(0)["why"]
    made.take(0, news(until_ns=1))


def test_one_that_does_not_keep_up_is_ended(
    begin: Callable[..., LiveExpectation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectation, "MOST_WAITING_BYTES", 1 << 20)
    made = begin("import time; time.sleep(60)")
    full = news(*(sent([(1, 48)], at, session=at) for at in range(1000)), until_ns=1)
    began_s, count = time.monotonic(), 0
    while not made.of_target(0)["why"]:
        made.take(0, full)
        count += 1
        gevent.sleep(0)
    assert "does not keep up" in made.of_target(0)["why"]
    assert 2 < count < 100
    assert time.monotonic() - began_s < 30  # nobody waited for the process


def test_what_is_reported_after_the_end_is_not_kept(begin: Callable[..., LiveExpectation]) -> None:
    made = begin("import time; time.sleep(60)")
    made.close()
    made.take(0, news(until_ns=1))
    assert made.of_target(0) == {"windows": [], "until_s": 0.0, "why": ""}


def test_windows_are_put_together_when_there_are_too_many() -> None:
    windows = Windows()
    for number in range(2 * MOST_WINDOWS + 2):
        windows.add(number, [10, 4, 5, 2])
    lines = windows.lines()
    assert len(lines) <= MOST_WINDOWS
    assert {line["end_s"] - line["start_s"] for line in lines} == {4 * WIDTH_NS / 1e9}
    assert [line["start_s"] for line in lines] == [12.0 * place for place in range(len(lines))]
    assert sum(line["prompt_tokens"] for line in lines) == 5 * (2 * MOST_WINDOWS + 2)


def test_where_no_request_reports_its_cached_tokens_all_count() -> None:
    windows = Windows()
    windows.add(0, [100, 40, 0, 0])
    assert [(line["prompt_tokens"], line["expected"]) for line in windows.lines()] == [(100, 40)]
    windows.add(1, [50, 10, 20, 10])
    assert [(line["prompt_tokens"], line["expected"]) for line in windows.lines()] == [(0, 0), (20, 10)]
