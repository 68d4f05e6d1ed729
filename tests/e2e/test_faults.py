"""Each arrangement fault moves the hit rate of a real llama.cpp server by what the model says, to the token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.analysis.run import TargetRun
from harness.analysis.steps import Steps
from harness.analysis.summary import summarise
from harness.embedded.server import RunningServer
from harness.launch import Swarm
from harness.sweep import run_variants

AGENT = """
name: short-agent
kind: agent-loop
system_tokens: 24
tools_tokens: 64
task_tokens: 48
steps: 4
observation_tokens: 12
output_tokens: 4
"""
CHAT = """
name: short-chat
kind: multi-round
system_tokens: 64
preamble_tokens: 64
rounds: 3
user_tokens: 12
output_tokens: 4
"""
DOCUMENT = """
name: short-document
kind: long-document
documents: 2
document_tokens: 120
corpus: words
questions: 5
question_tokens: 12
output_tokens: 4
"""
FAULTS = [
    (AGENT, {"timestamp-first": 1.0, "request-id-first": 1.0, "tools-shuffled": 0.6}),
    (CHAT, {"preamble-first": 0.5}),
    (DOCUMENT, {"passages-reranked": 1.0, "whitespace-changed": 0.4}),
]
"""A scenario, and kind of fault -> the share of its requests that have it."""
TOP = ("timestamp-first", "request-id-first")
IN_PIECES = ("tools-shuffled", "passages-reranked")
"""Ids of pieces do not spell their first words, so whether two of these are equal is not known: a token in each request
in which two such pieces meet."""


@pytest.mark.parametrize(("text", "rates"), FAULTS, ids=["agent-loop", "multi-round", "long-document"])
def test_a_fault_costs_what_the_model_says(
    text: str,
    rates: Mapping[str, float],
    llama_cpp_server: Callable[..., RunningServer],
    scenario: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    # With one slot and no states kept aside a request can reuse what it has in common with the one before it.
    server = llama_cpp_server(slots=1, context_tokens=4096, cache_ram_mib=0)
    swarm = Swarm(str(scenario(text)), server.url, workers=0, users=1, run_time="5s", results=str(tmp_path))
    variants = {kind: f"fault.kind={kind}; fault.rate={rate}" for kind, rate in rates.items()}
    runs = run_variants(swarm, "all", "fault", {"none": "fault=null", **variants})

    before = steps(runs["none"])
    assert runs["none"].measured.fault.isna().all()
    for kind, run in runs.items():
        after = steps(run)
        assert after.unexplained is not None
        assert abs(after.unexplained) <= (after.requests if kind in IN_PIECES else 0)
        assert after.requests > 5
        # All runs play the same sessions from the first one on: only how far they get depends on the machine.
        assert by_plan(run) == by_plan(runs["none"])
        if kind == "none":
            continue
        assert set(run.measured.fault.dropna()) == {kind}
        assert hit_rate(after) < hit_rate(before) - 0.05
        if kind in TOP:
            # Nothing but the template's head and, with a timestamp, the date can be shared by any two requests.
            lexicon = run.target.lexicon
            assert after.measured is not None
            assert after.measured <= after.requests * (lexicon["template"]["head_shared"] + 64)


def steps(run: TargetRun) -> Steps:
    found = summarise(run).waterfall.steps
    assert found is not None
    return found


def hit_rate(of_run: Steps) -> float:
    assert of_run.measured is not None
    return of_run.measured / of_run.prompt_tokens


def by_plan(run: TargetRun) -> Mapping[tuple[int, int], int]:
    """(session, turn) -> length of the prompt, of the first session."""
    rows = run.measured[run.measured.session < 1]
    return dict(zip(zip(rows.session, rows.turn, strict=True), rows.planned_prompt_tokens, strict=True))
