"""A worker's part of a run, against a scripted server: sub-agents are played with their parents, and end with them."""

from __future__ import annotations

import gc
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import gevent
import pyarrow.parquet as pq
import pytest

from harness.engines.target import Target
from harness.record.manifest import Manifest
from harness.record.run_directory import create
from harness.swarm.plan import Drained, LanePlan, LoadPlan, Plan
from harness.swarm.player import Player
from harness.swarm.worker import WorkerRun
from harness.workload.scenario import Replay, Scenario
from harness.workload.workload import Workload
from tests.client.posting import ANSWER
from tests.client.scripted import Peer, Server, scripted_server
from tests.swarm.fakes import small_lexicon
from tests.traces.written import agentic, call, sub_agent
from tests.workload.samples import agent_loop

INNER = sub_agent(6, 2_000, [call(0, 64, [5])], "inner")
TRACE: list[Any] = [
    call(0, 64, [1]),
    sub_agent(20, 15_000, [call(0, 64, [2]), INNER, call(8, 64, [2])], "first"),
    sub_agent(20, 15_000, [call(0, 64, [3])], "second"),
    sub_agent(5, None, [call(0, 64, [4]), call(4, 64, [4])], "behind"),
    call(21, 64, [1]),
]
"""Five sessions, by their first requests: the parent, first, second, behind, inner. Eight requests."""


class Office:
    """A server that answers at once, or keeps all requests of the sessions whose numbers modulo 5 are in `slow`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slow: set[int] = set()
        self.open_lines = 0
        self.server: Server

    def script(self, peer: Peer) -> None:
        self.open_lines += 1
        try:
            while True:
                head, _ = peer.read_request()
                found = re.search(rb"(?i)x-request-id: r1-0-(\d+)-(\d+)", head)
                assert found is not None
                self.asked.append(f"{int(found[1])}-{int(found[2])}")
                if int(found[1]) % 5 in self.slow:
                    return peer.wait_for_close()
                peer.send(ANSWER)
        finally:
            self.open_lines -= 1


@pytest.fixture
def office() -> Iterator[Office]:
    made = Office()
    with scripted_server(made.script) as made.server:
        yield made


Start = Callable[..., WorkerRun]


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = agentic(tmp_path / "t.json", TRACE)
    return Replay.model_validate({"name": "agents", "kind": "replay", "trace": str(path), "times": "none"})


@pytest.fixture
def start(tmp_path: Path, office: Office, scenario: Scenario) -> Iterator[Start]:
    """start(worker, workers) begins that worker's part of one run; it is over when the test is."""
    directory = create(tmp_path / "results", "r1")
    directory.write_manifest(
        Manifest(
            kvswarm_version="0.1.0",
            run_id="r1",
            state="running",
            started_ns=1,
            options={},
            scenario_name="agents",
            scenario={},
            targets=[],
            versions={},
        )
    )
    target = Target(url=office.server.url).model_dump(mode="json")
    lane = LanePlan(0, target, "openai", "m", small_lexicon().to_json(), "n", None, None)

    def begin(
        worker: int = 0,
        workers: int = 1,
        drain_timeout_s: float = 10.0,
        load: LoadPlan | None = None,
        played: Scenario = scenario,
        tells_requests: bool = False,
    ) -> WorkerRun:
        plan = Plan(
            run_id="r1",
            leg=0,
            folder=directory.url,
            scenario=played.to_json(),
            lanes=[lane],
            worker=worker,
            workers=workers,
            drain_timeout_s=drain_timeout_s,
            load=load or LoadPlan(1),
            tells_requests=tells_requests,
        )
        run = WorkerRun(plan, lambda **_: None, lambda _: None)
        stack.callback(run.drain, "drain")
        return run

    with ExitStack() as stack:
        stack.callback(gc.unfreeze)  # a worker's process freezes what is there when a run begins; this one goes on
        gc.freeze()  # what other tests left is not looked through at each start
        yield begin


def rows(folder: Path, drained: Drained) -> list[dict[str, Any]]:
    found = [row for name, _ in drained.parts for row in pq.read_table(folder / "results" / "r1" / name).to_pylist()]
    assert len(found) == drained.rows
    return found


def names(found: list[dict[str, Any]], status: str) -> list[str]:
    return sorted(f"{row['session']}-{row['turn']}" for row in found if row["status"] == status)


def wait_until(condition: Callable[[], object]) -> None:
    with gevent.Timeout(20):
        while not condition():
            gevent.sleep(0.01)


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_however_many_workers_each_session_is_played_once(
    workers: int, start: Start, office: Office, scenario: Scenario, tmp_path: Path
) -> None:
    played = []
    for worker in range(workers):
        run = start(worker, workers)
        players = [run.new_player(), run.new_player()]
        for each in (*players, players[0]):
            run.play_one(each)
        played += rows(tmp_path, run.drain("drain"))
    # Every worker played three sessions, with four sub-agents each.
    workload = Workload(scenario, "n")
    wanted = [
        f"{session.number}-{turn.index}"
        for place in range(3 * workers)
        for session in workload.session(place).with_sub_agents()
        for turn in session.turns
    ]
    assert sorted({int(name.split("-")[0]) for name in wanted}) == list(range(15 * workers))
    assert names(played, "ok") == sorted(office.asked) == sorted(wanted)
    assert len(played) == 24 * workers
    # A sub-agent is played where its parent is, and under the same user.
    by_lap: dict[int, set[tuple[int, int]]] = {}
    for row in played:
        by_lap.setdefault(row["session"] // 5, set()).add((row["worker"], row["user"]))
    assert {lap: len(users) for lap, users in by_lap.items()} == dict.fromkeys(range(3 * workers), 1)


HELD = {2, 3, 4}
"""All that runs once the first sub-agent has its first answer: the second one, that behind, and the inner one."""


def test_what_outlasts_the_drain_is_cancelled_and_has_a_row(start: Start, office: Office, tmp_path: Path) -> None:
    office.slow = HELD
    run = start(drain_timeout_s=0.1)
    user = gevent.spawn(run.play_one, run.new_player())
    wait_until(lambda: len(office.asked) == 5)
    drained = run.drain("drain")
    found = rows(tmp_path, drained)
    assert (names(found, "ok"), names(found, "cancelled")) == (["0-0", "1-0"], ["2-0", "3-0", "4-0"])
    assert (drained.rows, drained.cancelled) == (5, 3)
    wait_until(lambda: user.ready() and not office.open_lines)


def test_a_report_tells_what_ended_and_since_when_the_rest_is_under_way(
    start: Start, office: Office, tmp_path: Path
) -> None:
    assert start().report()["news"] is None
    office.slow = HELD
    run = start(drain_timeout_s=0.1, tells_requests=True)
    user = gevent.spawn(run.play_one, run.new_player())
    wait_until(lambda: len(office.asked) == 5)
    before = run.report()["news"]
    drained = run.drain("drain")
    after = run.report()["news"]
    by_name = {f"{row['session']}-{row['turn']}": row["t_send"] for row in rows(tmp_path, drained)}
    assert [f"{one.session}-{one.turn}" for one in before["requests"]] == ["0-0", "1-0"]
    held = [by_name[name] for name in ("2-0", "3-0", "4-0")]
    assert sorted(one.t_send for one in after["requests"]) == sorted(held)
    assert by_name["0-0"] < before["until_ns"] <= min(held)
    assert after["until_ns"] > max(held)
    wait_until(lambda: user.ready() and not office.open_lines)


def test_what_ends_before_the_drain_does_is_whole(start: Start, office: Office, tmp_path: Path) -> None:
    run = start()
    user = gevent.spawn(run.play_one, run.new_player())
    wait_until(lambda: len(office.asked) > 1)
    found = rows(tmp_path, run.drain("drain"))
    assert names(found, "ok") == sorted(office.asked)
    wait_until(lambda: user.ready() and not office.open_lines)


def test_a_user_that_is_taken_away_leaves_no_connection_open(start: Start, office: Office, tmp_path: Path) -> None:
    office.slow = HELD
    run = start()
    player = run.new_player()
    user = gevent.spawn(run.play_one, player)
    wait_until(lambda: len(office.asked) == 5)
    user.kill()
    run.retire(player)
    wait_until(lambda: not office.open_lines)
    found = rows(tmp_path, run.drain("drain"))
    assert (names(found, "ok"), names(found, "cancelled")) == (["0-0", "1-0"], ["2-0", "3-0", "4-0"])
    assert {row["error"] for row in found if row["status"] == "cancelled"} == {None}
    assert len(office.asked) == 5


def seats(run: WorkerRun, n: int) -> list[gevent.Greenlet]:
    """Users of Locust's that play until the run drains."""

    def user(player: Player) -> None:
        while not run.closed():
            run.play_one(player)

    return [gevent.spawn(user, run.new_player()) for _ in range(n)]


def requests_so_far(run: WorkerRun) -> int:
    return sum(group["requests"] for group in run.live.rows())


def in_an_open_loop(rate: str, **changes: Any) -> LoadPlan:
    return LoadPlan(time.time_ns() + 500_000_000, rate, "constant", **changes)


def test_in_an_open_loop_sessions_are_due_when_they_arrive(start: Start, tmp_path: Path) -> None:
    load = in_an_open_loop("0.4s:50")
    run = start(load=load)
    users = seats(run, 20)
    wait_until(lambda: requests_so_far(run) == 20 * 8)
    found = [row for row in rows(tmp_path, run.drain("drain")) if row["parent_request"] is None and row["turn"] == 0]
    assert [row["t_due"] - load.start_ns for row in sorted(found, key=lambda row: int(row["t_due"]))] == [
        round(n * 20e6) for n in range(20)
    ]
    assert {row["blocked_ms"] for row in found} == {0.0}
    assert all(row["late_ms"] >= 0 for row in found)
    wait_until(lambda: all(user.ready() for user in users))


def test_where_no_seat_is_free_the_arrival_is_a_row_that_was_never_sent(
    start: Start, office: Office, scenario: Scenario, tmp_path: Path
) -> None:
    office.slow = {0}  # each session waits for its first answer
    load = in_an_open_loop("0.3s:20")
    run = start(load=load, drain_timeout_s=0.1)
    seats(run, 2)
    wait_until(lambda: requests_so_far(run) == 4 and len(office.asked) == 2)
    found = sorted(rows(tmp_path, run.drain("drain")), key=lambda row: int(row["t_due"]))
    assert [row["status"] for row in found] == ["cancelled"] * 2 + ["refused"] * 4
    refused = found[2:]
    workload = Workload(scenario, "n")
    for place, row in enumerate(refused, start=2):
        session = workload.session(place)
        path = [part.content_id for message in session.scripted_prompt(0) for part in message.segments]
        assert (row["session"], row["turn"], row["user"], row["t_send"]) == (session.number, 0, None, None)
        assert [identity for identity in row["path"] if identity in path] == path
        assert row["error"] == "all 2 seats of this worker were taken"
        assert row["t_due"] == load.start_ns + place * 50_000_000
        assert (row["late_ms"], row["lag_ms"], row["ttft_ms"]) == (None, None, None)


def test_while_the_master_takes_no_rows_the_arrival_is_a_row_that_was_never_sent(
    start: Start, office: Office, tmp_path: Path
) -> None:
    run = start(load=in_an_open_loop("0.1s:20"))
    run.delivery = Mock(**{"outbox.is_full": True})
    users = [gevent.spawn(run.play_one, run.new_player()) for _ in range(2)]
    gevent.joinall(users, timeout=10, raise_error=True)
    run.delivery = None
    found = rows(tmp_path, run.drain("drain"))
    assert [(row["status"], row["error"]) for row in found] == [
        ("refused", "the master does not take the rows, and no more can be kept")
    ] * 2
    assert office.asked == []


def test_what_is_sent_before_the_warm_up_is_over_and_all_users_are_there_is_ramp(start: Start, tmp_path: Path) -> None:
    run = start(load=LoadPlan(time.time_ns(), ramps=True))
    player = run.new_player()
    run.play_one(player)
    assert run.ramp.all_users_started() == 0.0
    run.play_one(player)
    found = rows(tmp_path, run.drain("drain"))
    assert Counter((row["session"] // 5, row["phase"]) for row in found) == {(0, "ramp"): 8, (1, "measure"): 8}


def test_a_warm_up_ends_by_itself(start: Start, tmp_path: Path) -> None:
    run = start(load=LoadPlan(time.time_ns() - 1_000_000_000, warm_up_s=60.0))
    run.play_one(run.new_player())
    assert run.ramp.all_users_started() == pytest.approx(59, abs=1)
    assert {row["phase"] for row in rows(tmp_path, run.drain("drain"))} == {"ramp"}
    later = start(load=LoadPlan(time.time_ns() - 61_000_000_000, warm_up_s=60.0))
    assert later.ramp.all_users_started() is None
    assert later.ramp.is_over(time.time_ns())


def test_users_may_begin_in_the_midst_of_their_first_sessions(start: Start, tmp_path: Path) -> None:
    run = start(load=LoadPlan(1, stagger=True), played=agent_loop(steps=3))
    players = [run.new_player() for _ in range(8)]
    for player in (*players, *players):
        run.play_one(player)
    turns: dict[int, list[int]] = {}
    for row in sorted(rows(tmp_path, run.drain("drain")), key=lambda row: int(row["t_send"])):
        turns.setdefault(row["user"], []).append(row["turn"])
    # The session after it is played from its start.
    assert {tuple(each) for each in turns.values()} == {(0, 1, 2, 0, 1, 2), (1, 2, 0, 1, 2), (2, 0, 1, 2)}
