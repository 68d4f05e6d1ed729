"""All three kinds of session through the real swarm: every request is served, and rows and counters agree."""

from __future__ import annotations

from pathlib import Path

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.launch import Swarm, run_headless
from harness.sim.options import SimOptions
from tests.contract.subject import Subject

SCENARIOS = {
    "agent-loop": """
        system_tokens: 64
        tools_tokens: 128
        task_tokens: 200
        steps: 4
        observation_tokens: 24
        output_tokens: 6
        """,
    "long-document": """
        documents: 6
        document_tokens: 400
        corpus: words
        questions: 3
        question_tokens: 16
        output_tokens: 6
        """,
    "multi-round": """
        system_tokens: 48
        preamble_tokens: 200
        rounds: 3
        user_tokens: 16
        output_tokens: 6
        """,
}


def test_every_request_is_served_and_counted(subject: Subject, tmp_path: Path) -> None:
    """Of all kinds by a real server; a simulated one, which takes prompts as they come, gets those of agents."""
    simulated = isinstance(subject.options, SimOptions)
    for kind in ["agent-loop"] if simulated else SCENARIOS:
        check_run(subject, kind, "3s" if simulated else "6s", tmp_path)


def check_run(subject: Subject, kind: str, run_time: str, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"name: small\nkind: {kind}\n" + SCENARIOS[kind].replace("\n        ", "\n"))
    swarm = Swarm(str(scenario), subject.server.url, workers=0, users=2, run_time=run_time, results=str(tmp_path))
    run_id = f"contract-{kind}"  # texts are new for each run id
    assert run_headless(swarm, run_id) == 0
    run = load(run_id, tmp_path)
    assert run.manifest.state == "complete"
    target = run.only_target()
    assert target.target.identity["engine"] == subject.name
    assert target.target.check is not None
    assert target.target.check.verdict == "works"
    rows = target.measured
    assert (rows.status == "ok").all()
    assert set(rows.warmth) == {"cold", "warm"}
    assert (rows.prompt_tokens == rows.planned_prompt_tokens).all()
    assert (rows.output_tokens == rows.planned_output_tokens).all()
    assert (rows.cached_tokens % subject.granularity_tokens == 0).all()
    warm = rows[rows.warmth == "warm"]
    assert warm.cached_tokens.sum() / warm.prompt_tokens.sum() > 0.5
    agreement = summarise(target).agreement
    if subject.has_counters:
        assert agreement.sentence() == "exactly equal"
        assert agreement.prompt.counters == rows.prompt_tokens.sum() > 0
        assert agreement.cached.counters == rows.cached_tokens.sum() > 0
    else:
        assert agreement.cached.counters is None
        assert agreement.reason
