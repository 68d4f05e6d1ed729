"""What the page shows of one run while it goes on: points over time for each target, of what the workers report."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from harness.engines.base import Identity
from harness.record.bottleneck import bottleneck
from harness.record.manifest import Manifest
from harness.swarm.buckets import Buckets, quantile
from harness.swarm.expectation import LiveExpectation
from harness.swarm.first_requests import MASTER
from harness.swarm.history import History
from harness.swarm.lane_state import LaneState
from harness.swarm.leg import Leg
from harness.swarm.live import Figures, LiveFigures
from harness.swarm.live_server import LiveServer
from harness.swarm.prepare import Preparation
from harness.workload.pressure import working_set_tokens
from harness.workload.scenario import Scenario

STRETCH_S = 30.0
"""Rates and percentiles of a point are of the requests that were reported in so many seconds before it."""
POINT_EVERY_S = 3.0
"""As often as Locust's workers report."""
SHARES = (0.50, 0.90, 0.99)


class WorkingSet:
    """By the plan: distinct prefix tokens that requests can come back to, with so many live sessions."""

    def __init__(self, scenario: Scenario) -> None:
        self._shared_tokens: int | None = None
        if scenario.kind != "replay":  # whose trace alone tells what comes back
            shared, with_sessions = (
                working_set_tokens(scenario.model_copy(update={"running_sessions": n})) for n in (None, 1000)
            )
            self._shared_tokens, self._own_tokens = shared, (with_sessions - shared) / 1000

    def tokens(self, sessions: int | None) -> int | None:
        """None: not known."""
        if sessions is None or self._shared_tokens is None:
            return None
        return round(self._shared_tokens + sessions * self._own_tokens)


class Board:
    """Of one run."""

    def __init__(self, made: Preparation) -> None:
        self.total = LiveFigures()
        """Since the beginning."""
        self._fresh = LiveFigures()
        """Since the last point."""
        self._stretch: deque[tuple[float, list[dict[str, Any]]]] = deque()
        """(time, what was reported between the point before and this one)."""
        self._histories = {lane.target.name: History() for lane in made.lanes}
        self._servers = {
            lane.target.name: LiveServer(lane.engine.metrics, _capacity(lane.identity, made.scenario), STRETCH_S)
            for lane in made.lanes
        }
        self._capacities = {lane.target.name: _capacity(lane.identity, made.scenario) for lane in made.lanes}
        self._working_set = WorkingSet(made.scenario)
        self._sessions: dict[int, Mapping[str, int]] = {}
        """Worker -> target -> live sessions."""
        self._health: list[Mapping[str, Any]] = []
        """Rows of `harness_health` since the last point."""
        self._measured_from_s: dict[str, float | None] = {}
        """Target -> end of its ramp, since its load began; None: it goes on."""
        self.expectation: LiveExpectation | None = None
        """Of the leg that goes on; None: nobody looks on."""
        self._expectations: dict[str, tuple[LiveExpectation, int]] = {}
        """Target -> that of its leg, and its number there."""
        self._next_s = 0.0

    def take(self, report: Mapping[str, Any]) -> None:
        """What `WorkerRun.report` gave."""
        self.count(report["figures"])
        self._sessions[report["worker"]] = report["sessions"]
        self._health += report["health"]
        # A worker that has no plan of this leg yet still reports of the one before.
        if self.expectation is not None and report["news"] is not None and report["leg"] == self.expectation.leg:
            self.expectation.take(report["worker"], report["news"])

    def count(self, figures: Sequence[Mapping[str, Any]]) -> None:
        """What `LiveFigures.take` gave."""
        self.total.merge(figures)
        self._fresh.merge(figures)

    def is_due(self) -> bool:
        """Whether it is time for the next point."""
        return time.monotonic() >= self._next_s

    def begin(self, leg: int = 0, somebody_looks_on: bool = False) -> None:
        """A leg, number `leg` of its run, begins: what was before is none of its stretch."""
        self.expectation = LiveExpectation(leg) if somebody_looks_on else None
        self._stretch.clear()
        self._sessions.clear()
        self._health.clear()
        self._next_s = time.monotonic() + POINT_EVERY_S

    def expect(self, leg: Leg, manifest: Manifest) -> None:
        """The load of a leg has begun: begin to say what to expect, if somebody looks on."""
        if self.expectation is None:
            return
        numbers = [state.number for state in leg.lanes]
        for number, news in enumerate(leg.first_news, start=1):
            self.expectation.take(MASTER, {**news, "number": number})
        records = {number: manifest.targets[number].model_dump(mode="json") for number in numbers}
        self.expectation.begin(manifest.run_id, leg.planned_ns, sorted(leg.planned.values()), records)
        self._expectations |= {
            name: (self.expectation, number) for name, number in zip(leg.names, numbers, strict=True)
        }

    def point(self, leg: Leg) -> None:
        """Add a point for each target that is being loaded."""
        now_s = time.monotonic()
        self._next_s = now_s + POINT_EVERY_S
        self._stretch.append((now_s, self._fresh.take()))
        while self._stretch[0][0] <= now_s - STRETCH_S:
            self._stretch.popleft()
        recent = LiveFigures()
        for _, figures in self._stretch:
            recent.merge(figures)
        self._leave_out_lost_workers(leg)
        harness = _harness(self._health)
        self._health = []
        since_s = (time.time_ns() - leg.planned_ns) / 1e9
        ends_ns = None if leg.ramp is None else leg.ramp.ends_ns
        measured_from_s = None if ends_ns is None else max(0.0, (ends_ns - leg.planned_ns) / 1e9)
        for state in leg.lanes:
            name = state.lane.target.name
            self._measured_from_s[name] = measured_from_s
            requests = _requests(recent.of_target(name), min(STRETCH_S, since_s))
            server = self._server(now_s, state, self._live_sessions(name))
            self._histories[name].add({"t": round(since_s, 1), "phase": leg.phase, **requests, **server, **harness})

    def _leave_out_lost_workers(self, leg: Leg) -> None:
        lost = () if leg.partners is None else leg.partners.lost
        for client_id in lost:
            self._sessions.pop(leg.planned[client_id], None)
        if lost and self.expectation is not None:
            self.expectation.stop("a worker was lost, and what it sent last is not known")

    def end(self, leg: Leg) -> None:
        """The last point of a leg: all that came with the drain, and no session any more."""
        self._sessions = {0: dict.fromkeys(leg.names, 0)}
        self.point(leg)
        if self.expectation is not None:
            self.expectation.close()

    def _live_sessions(self, target: str) -> int | None:
        told = [sessions[target] for sessions in self._sessions.values() if target in sessions]
        return sum(told) if told else None

    def _server(self, now_s: float, state: LaneState, live: int | None) -> dict[str, Any]:
        name = state.lane.target.name
        return {
            "sessions": live,
            "working_set": self._working_set.tokens(live),
            **self._servers[name].look(now_s, state.metrics.collector.samples),
        }

    def lines(self, have: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
        """For each target, what a page lacks that has so many points of it, as `History.since` takes them."""
        known = have if len(have) == len(self._histories) else [(0, 0)] * len(self._histories)
        return [
            {
                "target": name,
                "capacity": self._capacities[name],
                "measured_from": self._measured_from_s.get(name),
                "expected": self._expected(name),
                **history.since(every, count),
            }
            for (name, history), (every, count) in zip(self._histories.items(), known, strict=True)
        ]

    def _expected(self, name: str) -> dict[str, Any] | None:
        if name not in self._expectations:
            return None
        expectation, number = self._expectations[name]
        return expectation.of_target(number)


def _capacity(identity: Identity, scenario: Scenario) -> int | None:
    return identity.capacity_tokens or scenario.capacity_tokens


def _requests(by_outcome: Mapping[str, Figures], span_s: float) -> dict[str, Any]:
    """Of the requests of a stretch; a time is [p50, p90, p99] in ms, None where there is none."""
    total = Figures()
    for figures in by_outcome.values():
        total.merge(figures)
    return {
        "requests": total.requests,
        "per_second": round(total.requests / span_s, 2) if span_s > 0 else None,
        "failed": total.failed,
        "refused": total.refused,
        "reporting": total.reporting,
        "hit_rate": total.cached_tokens / total.prompt_tokens if total.prompt_tokens else None,
        "ttft": {how: _percentiles(figures.ttft) for how, figures in by_outcome.items()},
        "timed": {how: sum(figures.ttft.values()) for how, figures in by_outcome.items()},
        "tpot": _percentiles(total.tpot),
        "late": _percentiles(total.late),
    }


def _percentiles(times: Buckets) -> list[float] | None:
    found = [quantile(times, share) for share in SHARES]
    return [float(f"{time_ms:.4g}") for time_ms in found if time_ms is not None] or None


def _harness(health: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The worst of all workers since the point before; None: none has reported."""
    lags = [row["loop_lag_max_ms"] for row in health if row["loop_lag_max_ms"] is not None]
    keys = ("span_ms", "loop_lag_p50_ms", "loop_lag_max_ms", "cpu_share")
    whys = [why for row in health if (why := bottleneck(*(row[key] for key in keys))) is not None]
    return {
        "loop_lag": round(max(lags), 2) if lags else None,
        "cpu_share": round(max(row["cpu_share"] for row in health), 3) if health else None,
        "bottleneck": whys[0] if whys else None,
    }
