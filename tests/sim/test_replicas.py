"""What routing costs, by real runs of one user on simulated replicas: to the token what their caches held."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.analysis import load
from harness.analysis.request_log import read_log
from harness.analysis.run import TargetRun
from harness.analysis.summary import Summary, summarise
from harness.cache.prompt import common_tokens
from harness.embedded.server import running_server
from harness.launch import Swarm, run_headless
from harness.sim.options import MannerName, SimOptions
from harness.sim.process_options import RouterName

SCENARIO = """
name: small
kind: agent-loop
sharing:
  - {name: tenant, fan_out: 4, tokens: 150, tenant: true}
system_tokens: 64
task_tokens: 120
steps: 4
observation_tokens: 24
output_tokens: 6
"""
GRANULARITY = {"vllm": 16, "sglang": 1, "llama-cpp": 1}


def run_on(manner: MannerName, router: RouterName, kv_tokens: int, folder: Path) -> TargetRun:
    """One user, so one request at a time."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO)
    options = SimOptions(
        manner=manner, replicas=3, router=router, kv_tokens=kv_tokens, context_tokens=2048, time_scale=20, slots=2
    )
    with running_server(options) as server:
        swarm = Swarm(str(scenario), server.target, workers=0, users=1, run_time="2s", results=str(folder))
        assert run_headless(swarm, router) == 0
    return load(router, folder).only_target()


def steps_of(summary: Summary) -> tuple[int, int, int]:
    """(expected, routing, unexplained); each request as expected."""
    steps = summary.waterfall.steps
    assert steps is not None
    assert steps.routing is not None
    assert steps.unexplained is not None
    assert summary.waterfall.exact == steps.requests > 20
    return steps.expected, steps.routing, steps.unexplained


def by_hand(run: TargetRun, granularity: int) -> tuple[int, int]:
    """(found, routing) of endless caches: each prompt compared with all before it, on its own replica and on any."""
    log = read_log(run)
    rows = log.rows
    found = routing = 0
    for number, request in enumerate(log.requests):
        before = [
            (common_tokens(request.prompt, (*other.prompt, *other.output)), replica == rows["replica"].iloc[number])
            for other, replica in zip(log.requests[:number], rows["replica"], strict=False)
        ]
        most = request.prompt_tokens - 1
        own = min(max((shared for shared, is_own in before if is_own), default=0), most) // granularity * granularity
        anywhere = min(max((shared for shared, _ in before), default=0), most) // granularity * granularity
        if rows["phase"].iloc[number] == "measure":
            found += own
            routing += anywhere - own
    return found, routing


@pytest.mark.parametrize("manner", ["vllm", "sglang"])
def test_round_robin_loses_exactly_what_other_caches_hold(manner: MannerName, tmp_path: Path) -> None:
    run = run_on(manner, "round-robin", 65_536, tmp_path)
    assert set(run.measured["replica"]) == {"0", "1", "2"}
    expected, routing, unexplained = steps_of(summarise(run))
    assert unexplained == 0
    assert (expected, routing) == by_hand(run, GRANULARITY[manner])
    assert routing > 0


@pytest.mark.parametrize("manner", ["vllm", "sglang", "llama-cpp"])
def test_routing_by_prefix_loses_less(manner: MannerName, tmp_path: Path) -> None:
    lost = {}
    for router in ("round-robin", "prefix"):
        summary = summarise(run_on(manner, router, 4_096, tmp_path))  # so little that they evict
        expected, routing, unexplained = steps_of(summary)
        assert unexplained == 0
        lost[router] = routing / (expected + routing)
        assert "in each of" in summary.waterfall.model
        if manner != "llama-cpp":
            assert summary.agreement.sentence() == "exactly equal"
    assert lost["prefix"] < lost["round-robin"] / 2
