"""The messages between master and workers survive Locust's packing."""

from __future__ import annotations

import pytest

from harness.engines.target import Target
from harness.swarm.live import LiveFigures
from harness.swarm.plan import Drained, LanePlan, LoadPlan, Plan
from harness.workload.lexicon import Lexicon
from harness.workload.scenario import Scenario
from tests.swarm.fakes import URL, small_lexicon, through_locust
from tests.workload.samples import agent_loop, long_document, multi_round


@pytest.mark.parametrize("scenario", [agent_loop(), long_document(popularity={"zipf": 1.1}), multi_round()])
def test_a_worker_reads_the_plan_that_the_master_made(scenario: Scenario) -> None:
    target, lexicon = Target(url=URL, headers={"X-Team": "a"}, api_key_env="KEY"), small_lexicon()
    plan = Plan(
        run_id="r1",
        leg=1,
        folder="s3://bucket/r1",
        scenario=scenario.to_json(),
        lanes=[
            LanePlan(1, target.model_dump(mode="json"), "openai", "m", lexicon.to_json(), "r1", None, 4),
            LanePlan(
                2, Target(url=URL, name="b").model_dump(mode="json"), "vllm", "m", lexicon.to_json(), "", "r1", None
            ),
        ],
        worker=1,
        workers=2,
        drain_timeout_s=0.5,
        load=LoadPlan(1_700_000_000_000_000_000, "2", "gamma:3", True, True, 1.5),
    )
    arrived = Plan.from_message(through_locust(plan.to_message()))
    assert arrived == plan
    assert Scenario.from_json(arrived.scenario) == scenario
    assert Lexicon.from_json(arrived.lanes[0].lexicon) == lexicon
    assert Target.model_validate(arrived.lanes[0].target) == target


def test_the_master_reads_a_workers_last_word() -> None:
    figures = LiveFigures()
    row = {"target": "here", "kind": "agent-loop", "warmth": "cold", "status": "ok", "ttft_ms": 0.5, "tpot_ms": None}
    row["late_ms"] = None
    figures.add({**row, "prompt_tokens": 10, "cached_tokens": None})
    parts = [["requests/part-0001-00000.parquet", 7]]
    drained = Drained("r1", 0, 1, "drain", parts, 7, 2, 1, 0.25, 3.5, "", figures.take())
    assert Drained.from_message(through_locust(drained.to_message())) == drained
