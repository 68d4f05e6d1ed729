"""What the page draws: the figures of a sliding stretch, put together from what all workers report."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from locust.rpc import protocol

from harness.engines.base import Identity
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.swarm.board import POINT_EVERY_S, STRETCH_S, Board, WorkingSet
from harness.swarm.leg import Leg
from harness.swarm.live import LiveFigures
from harness.swarm.plan import LoadPlan
from harness.swarm.prepare import Lane, Preparation
from harness.swarm.ramp import Ramp
from harness.workload.pressure import working_set_tokens
from tests.swarm.fakes import URL, small_lexicon, through_locust
from tests.swarm.test_live import request
from tests.swarm.test_manifest import OPTIONS
from tests.workload.samples import agent_loop


def lane(name: str) -> Lane:
    target = Target(url=URL, name=name, metrics_urls=())
    identity = Identity("openai", "m", capacity_tokens=40_000)
    return Lane(target, OpenAIEngine(target, "m"), identity, small_lexicon())


class Swarm:
    """A board whose clock stands still until it is told, and a leg that loads the target `here`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        made = Preparation(OPTIONS, "r1", "r1-ab12", agent_loop(), (lane("here"), lane("there")))
        self.now_s = 1000.0
        clock = SimpleNamespace(monotonic=lambda: self.now_s, time_ns=time.time_ns)
        monkeypatch.setattr("harness.swarm.board.time", clock)
        self.board = Board(made)
        self.leg = Leg(made, 0, str(folder), runner=None)
        self.leg.planned_ns = time.time_ns()
        self.leg.ramp = Ramp(LoadPlan(start_ns=self.leg.planned_ns))
        self.board.begin()

    def report(self, worker: int, *rows: dict[str, Any], sessions: int = 1, **health: Any) -> None:
        figures = LiveFigures()
        for row in rows:
            figures.add(row)
        second = {"span_ms": 1000.0, "loop_lag_p50_ms": 0.1, "loop_lag_max_ms": 2.0, "cpu_share": 0.2} | health
        told = {"worker": worker, "figures": figures.take(), "sessions": {"here": sessions}, "health": [second]}
        told |= {"leg": 0, "news": None}
        self.board.take(through_locust(told))

    def point(self) -> Any:
        self.now_s += POINT_EVERY_S
        self.board.point(self.leg)
        return self.board.lines(())[0]["newest"]


@pytest.fixture
def swarm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Swarm:
    return Swarm(monkeypatch, tmp_path)


def test_percentiles_are_of_the_requests_of_all_workers_not_means_of_percentiles(swarm: Swarm) -> None:
    swarm.report(0, *[request(ttft_ms=10.0, cached_tokens=900) for _ in range(90)])
    swarm.report(1, *[request(ttft_ms=1000.0, cached_tokens=900) for _ in range(10)])
    told = swarm.point()
    assert told["ttft"]["hit"] == pytest.approx([10, 10, 1000], rel=0.005)
    assert told["ttft"]["miss"] is None
    assert told["timed"] == {"hit": 100, "miss": 0, "unreported": 0}
    assert told["hit_rate"] == 0.9


def test_hits_and_misses_apart_and_the_rate_a_ratio_of_sums(swarm: Swarm) -> None:
    swarm.report(0, request(prompt_tokens=900, cached_tokens=0, ttft_ms=90.0))
    swarm.report(1, request(prompt_tokens=100, cached_tokens=100, ttft_ms=5.0), request(cached_tokens=None))
    told = swarm.point()
    assert told["hit_rate"] == 0.1
    assert (told["reporting"], told["requests"]) == (2, 3)
    assert {how: times[0] for how, times in told["ttft"].items()} == pytest.approx(
        {"hit": 5, "miss": 90, "unreported": 100}, rel=0.005
    )


def test_what_is_older_than_the_stretch_counts_no_more_but_in_the_table(swarm: Swarm) -> None:
    swarm.report(0, request(cached_tokens=1000))
    seen = []
    for _ in range(math.ceil(STRETCH_S / POINT_EVERY_S) + 1):
        seen.append(swarm.point()["requests"])
    assert seen[:-1] == [1] * 10
    assert seen[-1] == 0
    assert swarm.board.total.rows()[0]["requests"] == 1
    assert swarm.board.lines(())[0]["newest"]["hit_rate"] is None


def test_sessions_of_all_workers_add_up_and_make_the_working_set(swarm: Swarm) -> None:
    swarm.report(0, sessions=3)
    swarm.report(1, sessions=4)
    swarm.report(0, sessions=2)  # the newest word of each counts
    told = swarm.point()
    assert told["sessions"] == 6
    planned = working_set_tokens(agent_loop().model_copy(update={"running_sessions": 6}))
    assert told["working_set"] == pytest.approx(planned, abs=1)
    assert swarm.board.lines(())[0]["capacity"] == 40_000


def test_when_all_is_over_no_session_lives(swarm: Swarm) -> None:
    swarm.report(0, sessions=3)
    swarm.leg.ended = True
    assert swarm.point()["sessions"] == 3  # it drains
    swarm.board.end(swarm.leg)
    assert swarm.board.lines(())[0]["newest"]["sessions"] == 0


def test_the_worst_of_the_harness_is_told_and_when_it_was_the_bottleneck(swarm: Swarm) -> None:
    swarm.report(0, request(late_ms=0.2))
    swarm.report(1, request(late_ms=30.0), loop_lag_max_ms=250.0, cpu_share=0.95)
    told = swarm.point()
    assert (told["loop_lag"], told["cpu_share"], told["bottleneck"]) == (250, 0.95, "stall")
    assert told["late"] == pytest.approx([0.2, 30, 30], rel=0.005)
    told = swarm.point()
    assert (told["loop_lag"], told["bottleneck"]) == (None, None)


def test_only_the_target_that_is_loaded_has_points(swarm: Swarm) -> None:
    swarm.point()
    assert [line["count"] for line in swarm.board.lines(())] == [1, 0]
    assert swarm.board.lines([(1, 1), (1, 0)])[0]["points"] == []


def test_the_end_of_the_ramp_is_known_when_it_is(swarm: Swarm) -> None:
    swarm.leg.ramp = Ramp(LoadPlan(start_ns=swarm.leg.planned_ns, ramps=True))
    assert swarm.point()["phase"] == "ramp"
    assert swarm.board.lines(())[0]["measured_from"] is None
    swarm.leg.ramp.ends_ns = swarm.leg.planned_ns + 2_500_000_000
    swarm.point()
    assert swarm.board.lines(())[0]["measured_from"] == 2.5


def test_a_lost_worker_ends_what_is_expected_with_a_reason_and_has_no_sessions(swarm: Swarm) -> None:
    swarm.board.begin(somebody_looks_on=True)
    assert swarm.board.expectation is not None
    partners: Any = SimpleNamespace(lost=())
    swarm.leg.partners, swarm.leg.planned = partners, {"one": 0, "two": 1}
    swarm.report(0, sessions=3)
    swarm.report(1, sessions=4)
    assert swarm.point()["sessions"] == 7
    assert swarm.board.expectation.of_target(0)["why"] == ""
    partners.lost = ("two",)
    assert swarm.point()["sessions"] == 3
    assert "a worker was lost" in swarm.board.expectation.of_target(0)["why"]


def test_what_a_worker_still_says_of_the_target_before_is_no_news(
    swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    swarm.board.begin(leg=1, somebody_looks_on=True)
    taken: list[Any] = []
    monkeypatch.setattr(swarm.board.expectation, "take", lambda *news: taken.append(news))
    for leg in (0, 1):
        swarm.board.take(
            {"leg": leg, "worker": 3, "figures": [], "sessions": {}, "health": [], "news": {"number": leg}}
        )
    assert taken == [(3, {"number": 1})]


def test_a_trace_does_not_tell_its_working_set_beforehand() -> None:
    assert WorkingSet(agent_loop()).tokens(None) is None
    replay = agent_loop().model_copy(update={"kind": "replay"})
    assert WorkingSet(replay).tokens(5) is None


def test_a_report_stays_small_whatever_the_load() -> None:
    figures = LiveFigures()
    for i in range(20_000):  # spread evenly over the logarithms from 1 ms to 60 s
        time_ms = 60_000 ** (i / 20_000)
        figures.add(request(ttft_ms=time_ms, tpot_ms=time_ms / 100, late_ms=time_ms / 1000, cached_tokens=i % 1000))
    message: Any = protocol.Message
    assert len(message("stats", figures.take(), "node").serialize()) < 50_000
