from __future__ import annotations

from pathlib import Path

import pytest

from harness.cache.reuse_distance import reuse_distances
from harness.traces.reading import read_trace
from harness.traces.request import Parent
from tests.traces.written import agentic, call, sub_agent


@pytest.mark.parametrize("indent", [None, 1])
def test_one_session_on_one_line_or_on_many(tmp_path: Path, indent: int | None) -> None:
    requests = [call(0, 150, [1, 2], think_time=0.0, api_time=2.0), call(5, 192, [1, 2, 3], think_time=3.0)]
    trace = read_trace(agentic(tmp_path / "t.json", requests, indent))
    assert trace.block_tokens == 64
    first, second = trace.requests
    assert [tokens for _, tokens in first.prompt] == [64, 64, 22]
    assert list(second.prompt[:2]) == list(first.prompt[:2])
    assert second.prompt[2][0] not in {identity for identity, _ in first.prompt}
    assert (second.time_s, second.output_tokens, second.session, second.think_time_s) == (5, 10, "s", 3)
    assert second.parent is None


def test_an_id_may_stand_for_the_rest_of_a_prompt(tmp_path: Path) -> None:
    trace = read_trace(agentic(tmp_path / "t.json", [call(0, 150, [1, 2, 3]), call(1, 150, [1, 2, 3])]))
    assert list(trace.requests[0].prompt) == list(trace.requests[1].prompt)


def test_the_rest_without_an_id_is_shared_by_nobody(tmp_path: Path) -> None:
    trace = read_trace(agentic(tmp_path / "t.json", [call(0, 150, [1, 2]), call(1, 150, [1, 2])]))
    assert trace.requests[0].prompt[2] != trace.requests[1].prompt[2]


def test_another_model_shares_nothing(tmp_path: Path) -> None:
    requests = [call(0, 150, [1, 2]), call(1, 150, [1, 2]), {**call(2, 150, [1, 2]), "model": "other"}]
    trace = read_trace(agentic(tmp_path / "t.json", requests))
    assert reuse_distances([request.prompt for request in trace.requests], 64).hit_tokens() == 128


def test_sub_agents_run_side_by_side_while_their_parent_waits(tmp_path: Path) -> None:
    # A sub-agent's t is the time of its end, so both start at 11, when the answer to request 0 has been there for 1 s.
    requests = [
        call(0, 64, [1], api_time=10.0),
        sub_agent(41, 30_000, [call(0, 64, [8], api_time=1.0), call(20, 128, [8, 9], think_time=19.0)]),
        sub_agent(51, 40_000, [call(0, 64, [8])], name="a2"),
        call(54, 128, [1, 2], think_time=44.0),
        call(60, 128, [1, 2], think_time=1.0),
    ]
    trace = read_trace(agentic(tmp_path / "t.json", requests))
    shown = [(request.time_s, request.session, request.think_time_s) for request in trace.requests]
    assert shown == [
        (0, "s", None),
        (11, "s/a1", 1),
        (11, "s/a2", 1),
        (31, "s/a1", 19),
        (54, "s", 3),
        (60, "s", 1),
    ]
    parents = {request.session: request.parent for request in trace.requests}
    assert parents == {"s": None, "s/a1": Parent("s", 0, 1), "s/a2": Parent("s", 0, 1)}
    assert trace.requests[1].prompt == trace.requests[2].prompt


def test_nobody_waits_for_a_sub_agent_in_the_background(tmp_path: Path) -> None:
    # It has no duration: its t is when it was launched.
    requests = [
        call(0, 64, [1], api_time=10.0),
        sub_agent(11, None, [call(0, 64, [8]), call(100, 64, [8])]),
        call(20, 64, [1], think_time=10.0),
    ]
    trace = read_trace(agentic(tmp_path / "t.json", requests))
    shown = [(request.time_s, request.session, request.think_time_s) for request in trace.requests]
    assert shown == [(0, "s", None), (11, "s/a1", 1), (20, "s", 10), (111, "s/a1", None)]
    assert trace.requests[1].parent == Parent("s", 0, None)


def test_after_the_last_request_nobody_waits_either(tmp_path: Path) -> None:
    requests = [call(0, 64, [1], api_time=1.0), sub_agent(9, 5_000, [call(0, 64, [8])])]
    assert read_trace(agentic(tmp_path / "t.json", requests)).requests[1].parent == Parent("s", 0, None)


def test_a_sub_agent_may_have_sub_agents(tmp_path: Path) -> None:
    inner = sub_agent(8, 4_000, [call(0, 64, [9])], name="b")
    outer = sub_agent(30, 20_000, [call(0, 64, [8], api_time=2.0), inner, call(9, 64, [8])])
    trace = read_trace(agentic(tmp_path / "t.json", [call(0, 64, [1]), outer, call(31, 64, [1])]))
    shown = [(request.time_s, request.session) for request in trace.requests]
    assert shown == [(0, "s"), (10, "s/a1"), (14, "s/a1/b"), (19, "s/a1"), (31, "s")]
    assert trace.requests[2].parent == Parent("s/a1", 0, 1)


def test_an_agent_id_may_come_again(tmp_path: Path) -> None:
    # Once as another session of the same agent, and once at the same time.
    again = [sub_agent(t, None, [call(0, 64, [number]), call(1, 64, [number])]) for number, t in enumerate((5, 5, 9))]
    requests = [call(0, 64, [1], api_time=4.0), *again[:2], call(8, 64, [1]), again[2]]
    trace = read_trace(agentic(tmp_path / "t.json", requests))
    parents = {request.session: request.parent for request in trace.requests if request.parent}
    assert list(parents.values()) == [Parent("s", 0, None), Parent("s", 0, None), Parent("s", 1, None)]
    assert [sum(request.session == name for request in trace.requests) for name in parents] == [2, 2, 2]
