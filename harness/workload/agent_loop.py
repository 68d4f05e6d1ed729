"""Agent loops: system prompt and tools for all, then a task, answers and observations in a growing transcript."""

from __future__ import annotations

from harness.workload.distribution import Draws, LongestDraws
from harness.workload.parts import opening, shared_segment, turns
from harness.workload.scenario import AgentLoop
from harness.workload.session import Session


def session(scenario: AgentLoop, seed: str, number: int) -> Session:
    """Session `number`; `seed` (the scenario's and the nonce) goes into the texts only."""
    return _session(scenario, seed, number, Draws(scenario.seed, "session", number))


def longest_session(scenario: AgentLoop) -> Session:
    """A session of the largest lengths that any session can have."""
    return _session(scenario, "", 0, LongestDraws())


def _session(scenario: AgentLoop, seed: str, number: int, draws: Draws) -> Session:
    task = ("user", draws.length("task_tokens", scenario.task_tokens))
    observations = [
        ("observation", draws.length("observation_tokens", scenario.observation_tokens))
        for _ in range(draws.length("steps", scenario.steps) - 1)
    ]
    return Session(
        number=number,
        kind=scenario.kind,
        opening=opening(
            shared_segment("system", scenario.system_tokens, scenario, seed),
            shared_segment("tools", scenario.tools_tokens, scenario, seed),
        ),
        turns=turns([task, *observations], scenario, seed, number, draws),
        keeps_history=True,
    )
