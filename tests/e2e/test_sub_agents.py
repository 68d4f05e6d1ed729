"""A trace of an agent with sub-agents, replayed by real Locust processes against a real llama.cpp server."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from harness.record.reader import open_run
from harness.traces.export import export_run
from harness.workload.prefixes import planned_reuse
from harness.workload.scenario import load_scenario
from harness.workload.workload import Workload
from tests.e2e.conftest import Locust, SlowServer
from tests.traces.written import agentic, call, sub_agent
from tests.waiting import wait_until

SCENARIO = """
name: small-agents
kind: replay
trace: small.json
times: {times}
"""


def grows(*ids: int, **more: object) -> list[dict[str, object]]:
    """Calls of an agent whose prompt grows by a block of 64 tokens, 0.05 s after the answer before."""
    return [
        {**call(10.0 * number, 64 * (number + 1), list(ids[: number + 1]), api_time=9.95, think_time=0.05), "out": 4}
        for number, _ in enumerate(ids)
    ]


PARENT, FIRST, SECOND, BEHIND, INNER = range(5)
"""Sessions by their first requests: at 0, 10, 10, 11 and 20 s."""
ROOT = grows(1, 2, 3)
NESTED: list[Any] = grows(11, 12)
TRACE: list[Any] = [
    ROOT[0],
    sub_agent(60, 50_000, [NESTED[0], sub_agent(30, 20_000, grows(21, 22), "inner"), {**NESTED[1], "t": 31}], "first"),
    sub_agent(60, 50_000, grows(31, 32), "second"),
    sub_agent(11, None, grows(41, 42, 43, 44, 45, 46), "behind"),
    {**ROOT[1], "t": 61},
    {**ROOT[2], "t": 80},
]
TURNS = {PARENT: 3, FIRST: 2, SECOND: 2, BEHIND: 6, INNER: 2}
"""Each prompt has 64 tokens more than the one before it in its session."""
STARTED_BY = {FIRST: PARENT, SECOND: PARENT, BEHIND: PARENT, INNER: FIRST}
"""Each by the first request of that session, whose second waits for all of these but the one behind."""


def run_locust(
    start_locust: Callable[..., Locust],
    tmp_path: Path,
    path: Path,
    url: str,
    *options: object,
    workers: int = 0,
    answers: int | None = None,
) -> pd.DataFrame:
    """The measured rows of a run, with the lap and the agent that each belongs to."""
    words = ("swarm.py", "--scenario", path, "--target", url, "--headless", *options)
    locust = start_locust(*words, workers=workers)
    code, output = locust.stop_after(tmp_path / "results", url, answers, output_tokens=4) if answers else locust.wait()
    assert code == 0, output
    rows = load("latest", tmp_path / "results").measured.copy()
    assert (rows.status == "ok").all()
    assert rows.request_id.is_unique
    assert not rows.duplicated(["session", "turn"]).any()
    rows["lap"], rows["agent"] = rows.session // 5, rows.session % 5
    return rows


def check_order(lap: pd.DataFrame) -> None:
    """Of the requests of a lap, all of which were sent."""
    sent = lap.set_index(["agent", "turn"])
    assert sorted(sent.index) == [(agent, turn) for agent, turns in TURNS.items() for turn in range(turns)]
    begin = {agent: sent.t_send[agent, 0] for agent in TURNS}
    end = {agent: sent.t_end[agent].max() for agent in TURNS}
    for agent, parent in STARTED_BY.items():
        assert set(sent.parent_request[agent]) == {sent.request_id[parent, 0]}
        assert sent.t_end[parent, 0] <= begin[agent] < sent.t_send[parent, 1]
        if agent != BEHIND:
            assert end[agent] <= sent.t_send[parent, 1]
    assert sent.parent_request[PARENT].isna().all()
    # The first two run at the same time: each begins before the other has ended.
    assert max(begin[FIRST], begin[SECOND]) < min(end[FIRST], end[SECOND])
    for agent, turns in TURNS.items():
        for turn in range(1, turns):
            assert sent.t_end[agent, turn - 1] <= sent.t_send[agent, turn]


def test_each_request_is_sent_once_in_its_order_by_two_workers(
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = llama_cpp_server(slots=8, cache_ram_mib=0)
    agentic(tmp_path / "small.json", TRACE)
    path = scenario(SCENARIO.format(times="none"))
    options = ("--users", 2, "--spawn-rate", 2)
    rows = run_locust(start_locust, tmp_path, path, server.url, *options, workers=2, answers=8 * sum(TURNS.values()))

    assert set(rows.worker) == {0, 1}
    assert (rows.lap % 2 == rows.worker).all()
    complete = 0
    for worker in (0, 1):
        played = rows[rows.worker == worker]
        # One user each: laps follow each other without a hole, and only the last can be cut off by the run's end.
        laps = sorted(played.lap.unique())
        assert laps == list(range(worker, laps[-1] + 1, 2))
        ended = 0
        for number in laps:
            lap = played[played.lap == number]
            assert lap.t_send.min() >= ended
            ended = lap.t_end.max()
            if number != laps[-1] or len(lap) == sum(TURNS.values()):
                check_order(lap)
                complete += 1
    assert complete > 2
    # The one behind, which nobody waits for, outlasts its parent's wait for the others.
    behind = rows[rows.agent == BEHIND].groupby("lap").t_end.max()
    second = rows[(rows.agent == PARENT) & (rows.turn == 1)].set_index("lap").t_send
    assert (behind - second).gt(0).any()
    # Both workers' sessions are under way at the same time.
    spans = rows.groupby("worker").agg(begin=("t_send", "min"), end=("t_end", "max"))
    assert spans.begin.max() < spans.end.min()


def test_one_lap_is_paced_and_cached_as_the_trace_says(
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    # More slots than sessions, so each agent finds what it sent before, and nothing else.
    server = llama_cpp_server(slots=16, cache_ram_mib=0)
    agentic(tmp_path / "small.json", TRACE)
    path = scenario(SCENARIO.format(times="trace"))
    # The second lap is due after 80 s and more: the answers of this server take less time than the trace's did.
    rows = run_locust(start_locust, tmp_path, path, server.url, "--users", 1, answers=sum(TURNS.values()))
    check_order(rows)

    run = load("latest", tmp_path / "results")
    (record,) = run.manifest.targets
    template = record.lexicon["template"]
    head = template["head"]["user"] + template["opener_tokens"]
    around = head + template["tail"]["user"]
    assert (rows.prompt_tokens == rows.planned_prompt_tokens).all()
    assert (rows.prompt_tokens == 64 * (rows.turn + 1) + around).all()
    warm = rows[rows.turn > 0]
    # To the token, but for words with which the answer before and the next block may begin alike.
    assert (warm.cached_tokens - (64 * warm.turn + head)).between(0, 3).all()
    assert (rows[rows.turn == 0].cached_tokens <= head + 3).all()
    steps = summarise(run.only_target()).waterfall.steps
    assert steps is not None
    assert (steps.requests, steps.unexplained) == (len(rows), 0)

    # Due as long as in the trace after the last of all that a request waits for, to the nanosecond.
    sent = rows.set_index(["agent", "turn"])
    waits_for = {(agent, turn): [(agent, turn - 1)] for agent, turn in sent.index if turn}
    waits_for |= {(agent, 0): [(parent, 0)] for agent, parent in STARTED_BY.items()}
    waits_for[PARENT, 1] += [(FIRST, 1), (SECOND, 1)]
    waits_for[FIRST, 1] += [(INNER, 1)]
    pauses = {
        (agent, turn): int(sent.t_due[agent, turn]) - max(int(sent.t_end[one]) for one in waited)
        for (agent, turn), waited in waits_for.items()
    }
    assert set(pauses) == set(sent.index) - {(PARENT, 0)}
    longer_ms = {(PARENT, 1): 1_000, (FIRST, 1): 1_000, (BEHIND, 0): 1_050}
    assert pauses == {one: longer_ms.get(one, 50) * 1_000_000 for one in pauses}
    assert (rows[rows.parent_request.notna() | (rows.turn > 0)].blocked_ms == 0).all()

    (written,) = export_run(open_run("latest", tmp_path / "results"), tmp_path / "again.jsonl", 8)
    assert written.requests == len(rows)
    again = SCENARIO.format(times="trace").replace("small.json", "again.jsonl") + "block_tokens: 8\n"
    played = Workload(load_scenario(str(scenario(again)), tmp_path), "n")
    flat = [played.session(number) for number in range(len(TURNS))]
    assert sorted(len(session.turns) for session in flat) == sorted(TURNS.values())
    assert not any(session.sub_agents for session in flat)
    planned = planned_reuse(flat)
    assert (planned.requests, planned.prompt_tokens) == (len(rows), steps.prompt_tokens)
    # Less than a block is lost of what each request shares, and what the first one shares with the warm-up.
    assert 0 <= steps.shareable - (planned.prompt_tokens - planned.new_tokens) <= 7 * len(rows) + head


def test_a_run_that_is_stopped_in_the_middle_has_a_row_for_every_request_of_its_sub_agents(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = slow_server(0.5)
    agentic(tmp_path / "small.json", TRACE)
    words = ("--scenario", scenario(SCENARIO.format(times="none")), "--target", server.url, "--headless", "--users", 4)
    locust = start_locust("swarm.py", *words, "--spawn-rate", 4, workers=2)
    wait_until(lambda: len(server.asked) > 20)
    os.killpg(locust.process.pid, signal.SIGINT)  # as Ctrl-C in a terminal
    code, output = locust.wait()
    assert code == 0, output
    run = load("latest", tmp_path / "results")
    assert run.manifest.state == "complete"
    assert sorted(run.measured.request_id) == sorted(server.asked)
    assert (run.measured.status == "ok").all()
    assert run.measured.parent_request.notna().any()


def test_with_as_many_users_as_sessions_run_at_one_time_nobody_waits_for_a_user(
    slow_server: Callable[[float], SlowServer],
    scenario: Callable[[str], Path],
    start_locust: Callable[..., Locust],
    tmp_path: Path,
) -> None:
    server = slow_server(2.0)
    lines = [
        {"timestamp": at_ms, "input_length": 100, "output_length": 1, "hash_ids": [at_ms]}
        for at_ms in (0, 3_000, 3_300, 3_600, 3_900, 60_000)
    ]
    (tmp_path / "small.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    path = scenario(SCENARIO.format(times="trace"))
    options = ("--users", 4, "--spawn-rate", 100, "--run-time", "7s")
    rows = run_locust(start_locust, tmp_path, path, server.url, *options, workers=2).sort_values("session")
    assert list(rows.session) == list(range(5))
    assert list(rows.worker) == [0, 1, 0, 1, 0]
    # The first is due before the users are there; each later one is sent at its time, while those before it wait.
    assert list(rows.blocked_ms[1:]) == [0, 0, 0, 0]
    assert rows.t_send[1:].max() < rows.t_end[1:].min()
