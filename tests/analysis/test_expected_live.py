"""What is expected while a run goes on is what the report's models say of the same requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from harness.analysis import expected_live
from harness.analysis.expected import expect
from harness.analysis.expected_engines import engine_cache
from harness.analysis.expected_live import LiveExpectation, Stopped
from harness.analysis.expected_replicas import expect_on_replicas, replica_names
from harness.analysis.request_log import read_log
from harness.record.news import RequestNews
from tests.analysis.rows import Row
from tests.analysis.waterfall_rows import LLAMA_CPP, MLX_LM, SGLANG, VLLM, sent, target_run

WIDTH_NS = 100
RULES: list[dict[str, Any]] = [{**VLLM, "capacity_tokens": 320}, {**SGLANG, "capacity_tokens": 300}, LLAMA_CPP, MLX_LM]
"""So little room that prompts are evicted."""


def traffic(**changes: Any) -> list[Row]:
    """Sessions of three turns whose requests overlap; one answer in seven is given up, one fails before its first
    token, one is refused."""
    rows = []
    for number in range(60):
        session, turn = number // 3, number % 3
        path = [(1, 40), (2 + session % 3, 30), *((100 + 10 * session + past, 20) for past in range(turn + 1))]
        at = 10 * number
        kind: dict[str, Any] = {"cached_tokens": None if number % 5 == 0 else 0, "planned_output_tokens": 2}
        kind["t_end"] = at + 8 + 4 * (number % 9)
        if number % 7 == 3:
            kind |= {"status": "cancelled", "t_last": None, "t_end": None, "output_tokens": None}
        if number % 20 == 9:
            kind |= {"status": "timeout", "t_first": None, "t_last": None}
        if number % 20 == 19:
            kind |= {"status": "http_error", "t_first": None, "t_last": None}
        rows.append(sent(path, at, at + 7) | {"session": session, "turn": turn} | kind | changes)
    return rows


def begun(identity: dict[str, Any], workers: Iterable[int] = (0,), **changes: Any) -> LiveExpectation:
    record = target_run([], identity, **changes).target
    begin = {"run_id": "r1", "origin_ns": 0, "width_ns": WIDTH_NS, "workers": list(workers)}
    return LiveExpectation(json.loads(json.dumps(begin | {"targets": {0: record.model_dump(mode="json")}})))


def end_ns(row: Row) -> int:
    return int(max(row[name] for name in ("t_send", "t_first", "t_last", "t_end") if row[name] is not None))


class Worker:
    """Tells what ended, each time that it is asked."""

    def __init__(self, number: int, rows: list[Row]) -> None:
        self.number = number
        self._rows = sorted(rows, key=end_ns)
        self._news = RequestNews({"t": 0})

    def told(self, now_ns: int) -> Any:
        while self._rows and end_ns(self._rows[0]) < now_ns:
            self._news.add(self._rows.pop(0))
        until_ns = min([now_ns, *(row["t_send"] for row in self._rows)])
        return json.loads(json.dumps({"worker": self.number, **self._news.take(until_ns)}))


def summed(answers: Iterable[dict[str, Any]]) -> dict[int, list[int]]:
    sums: dict[int, list[int]] = {}
    for answer in answers:
        for window, *values in answer["windows"][0]:
            sums[window] = [one + more for one, more in zip(sums.get(window, [0] * 4), values, strict=True)]
    return sums


def by_the_report(rows: list[Row], identity: dict[str, Any]) -> dict[int, list[int]]:
    run = target_run(rows, identity)
    log = read_log(run)
    cache = engine_cache(run.target, replica_names(log))
    found = (expect_on_replicas(log, cache) if cache.replicas else expect(log.requests, cache)).found
    assert found is not None
    sums: dict[int, list[int]] = {}
    told = log.rows["cached_tokens"].notna()
    for request, expected, reports in zip(log.requests, found, told, strict=True):
        both = [request.prompt_tokens, expected]
        window = sums.setdefault(request.end_ns // WIDTH_NS, [0] * 4)
        window[:] = [one + more for one, more in zip(window, [*both, *(both if reports else (0, 0))], strict=True)]
    return sums


def deal(rows: list[Row], workers: int) -> list[Worker]:
    return [Worker(number, [row for row in rows if row["session"] % workers == number]) for number in range(workers)]


@pytest.mark.parametrize("identity", RULES, ids=lambda identity: identity["engine"])
@pytest.mark.parametrize("workers", [1, 3])
def test_reports_of_all_workers_give_what_the_report_of_the_run_gives(identity: dict[str, Any], workers: int) -> None:
    rows = traffic()
    wanted = by_the_report(rows, identity)
    assert 0 < sum(sums[1] for sums in wanted.values()) < sum(sums[0] for sums in wanted.values())
    expectation, told = begun(identity, range(workers)), deal(rows, workers)
    answers = [expectation.hear(worker.told(now_ns)) for now_ns in range(30, 900, 30) for worker in told]
    assert summed(answers) == wanted


@pytest.mark.parametrize("identity", RULES[:3], ids=lambda identity: identity["engine"])
def test_each_replica_has_a_cache_of_its_own_from_when_it_is_heard_of(identity: dict[str, Any]) -> None:
    rows = [row | {"replica": f"replica-{row['session'] * 5 % 3 % 2}"} for row in traffic()]
    rows[8]["replica"] = None
    (worker,) = deal(rows, 1)
    expectation = begun(identity)
    answers = [expectation.hear(worker.told(now_ns)) for now_ns in range(30, 900, 30)]
    assert summed(answers) == by_the_report(rows, identity)


def test_a_request_counts_when_all_workers_have_told_what_they_sent_before_its_end() -> None:
    # 48 tokens, and the same again from the other worker: sent first, it brings in what the other one finds.
    early, late = (sent([(1, 48)], at, at + 5, at + 10, session=at, cached_tokens=0) for at in (100, 150))
    expectation = begun({**VLLM, "capacity_tokens": 320}, workers=[0, 1])
    first, second = Worker(0, [early]), Worker(1, [late])
    answer = expectation.hear(second.told(200))
    assert (answer["until_ns"], answer["windows"]) == (0, {0: []})
    assert expectation.hear(first.told(105))["until_ns"] == 100  # it is under way
    answer = expectation.hear(first.told(155))
    assert (answer["until_ns"], answer["windows"][0]) == (155, [[1, 48, 0, 48, 0]])
    assert expectation.hear(first.told(300))["windows"][0] == [[1, 48, 32, 48, 32]]


def test_requests_of_another_cache_salt_share_nothing() -> None:
    rows = [sent([(1, 48)], at, session=at, cache_salt=salt) for at, salt in ((0, None), (10, "s"), (20, "s"))]
    (worker,) = deal(rows, 1)
    answer = begun({**VLLM, "capacity_tokens": 320}).hear(worker.told(100))
    assert answer["windows"][0] == [[0, 3 * 48, 32, 0, 0]]


@pytest.mark.parametrize(("cold_start", "expected"), [("a nonce", 32), ("reset: all", 0)])
def test_the_masters_own_requests_fill_the_cache_unless_it_was_reset(cold_start: str, expected: int) -> None:
    expectation = begun({**VLLM, "capacity_tokens": 320}, cold_start=cold_start)
    own = sent([(1, 48)], 0, session=None, turn=None, phase="check")
    assert expectation.hear(Worker(-1, [own]).told(50))["windows"] == {0: []}
    (worker,) = deal([sent([(1, 48)], 60, session=0, turn=0)], 1)
    assert expectation.hear(worker.told(200))["windows"][0] == [[0, 48, expected, 0, 0]]


def test_without_a_capacity_there_is_a_reason_instead() -> None:
    expectation, (worker,) = begun(VLLM), deal(traffic(), 1)
    answer = expectation.hear(worker.told(500))
    assert answer["windows"] == {0: []}
    assert answer["unknown"][0].startswith("the KV capacity is not known")


def test_a_cache_that_is_off_serves_nothing() -> None:
    expectation, (worker,) = begun({**VLLM, "prefix_caching": False}), deal(traffic(), 1)
    sums = summed([expectation.hear(worker.told(900))]).values()
    assert sum(one[0] for one in sums) > 0
    assert sum(one[1] for one in sums) == 0


def stopped_by(*changes: Callable[[dict[str, Any]], Any]) -> str:
    """What is said when these were done to the reports of one worker, one after the other."""
    expectation, (worker,) = begun(SGLANG), deal(traffic(), 1)
    for number, change in enumerate(changes):
        report = worker.told(100 * (number + 1))
        change(report)
        try:
            expectation.hear(report)
        except Stopped as stopped:
            assert number == len(changes) - 1
            return str(stopped)
    return ""


def test_what_is_missing_or_out_of_order_stops_it_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_it_is(report: dict[str, Any]) -> None:
        pass

    assert "report of worker 0 was lost" in stopped_by(as_it_is, lambda report: report.update(number=3))
    assert "more than can be told" in stopped_by(lambda report: report.update(is_full=True))
    assert "a clock was set back" in stopped_by(lambda report: report.update(until_ns=500), as_it_is)
    monkeypatch.setattr(expected_live, "MOST_WAITING", 20)
    assert "under way for so long" in stopped_by(lambda report: report.update(until_ns=0))
    monkeypatch.setattr(expected_live, "MOST_MEMORY_BYTES", 1 << 20)
    assert "grown to 1 MiB" in stopped_by(lambda report: report.update(requests=[]))
