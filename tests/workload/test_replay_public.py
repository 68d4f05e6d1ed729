"""A replay of a public trace plans the hit rates that are known of it. KVSWARM_TRACES names the folder with traces."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.traces.reading import read_trace
from harness.traces.request import Skipped, Trace, TraceRequest
from harness.traces.reuse import reuse_of
from harness.workload.scenario import Replay
from harness.workload.workload import Workload

FOLDER = os.environ.get("KVSWARM_TRACES")
pytestmark = [
    pytest.mark.optional,
    pytest.mark.skipif(FOLDER is None, reason="KVSWARM_TRACES does not name a folder with traces"),
]


@pytest.mark.parametrize(
    ("name", "requests", "infinite", "of_10k_blocks"),
    [("conversation", 12_031, 0.3734, 0.2193), ("synthetic", 3_993, 0.6504, 0.4430)],
)
def test_planned_hit_rates_are_the_known_ones(name: str, requests: int, infinite: float, of_10k_blocks: float) -> None:
    path = Path(str(FOLDER)) / f"mooncake_{name}.jsonl"
    scenario = Replay.model_validate({"name": name, "kind": "replay", "trace": str(path)})
    workload = Workload(scenario, "n")
    planned = []
    for number in range(requests):
        (turn,) = workload.session(number).turns
        prompt = [(segment.content_id, segment.tokens) for segment in turn.question.segments]
        planned.append(TraceRequest(turn.due_s, prompt, turn.output_tokens))
    found, _ = reuse_of(Trace(name, "", 512, planned, Skipped(0, None)), 512, [10_000 * 512])
    assert found.infinite.hit_rate == pytest.approx(infinite, abs=0.00005)
    assert found.capacities[0].hit_rate == pytest.approx(of_10k_blocks, abs=0.00005)


def agentic_traces() -> list[Path]:
    return sorted(Path(FOLDER, "agentic").glob("*.json")) if FOLDER else []


@pytest.mark.parametrize("path", agentic_traces(), ids=lambda path: path.stem)
def test_agents_and_their_sub_agents_are_planned_whole(path: Path) -> None:
    trace = read_trace(path)
    workload = Workload(Replay.model_validate({"name": "a", "kind": "replay", "trace": str(path)}), "n")
    sessions = [one for lap in range(2) for one in workload.session(lap).with_sub_agents()]
    by_key = {request.session for request in trace.requests}
    assert sorted(session.number for session in sessions) == list(range(2 * len(by_key)))
    lap = [turn for session in sessions[: len(by_key)] for turn in session.turns]
    played = [
        TraceRequest(None, [(each.content_id, each.tokens) for each in turn.question.segments], 1) for turn in lap
    ]
    assert len(played) == len(trace.requests)
    planned, _ = reuse_of(Trace("", "", trace.block_tokens, played, Skipped(0, None)))
    assert planned.infinite == reuse_of(trace)[0].infinite
