"""The parts that sessions of every kind are built from."""

from __future__ import annotations

from collections.abc import Iterable

from harness.workload.content import content_id
from harness.workload.distribution import Draws, LogNormal, Uniform
from harness.workload.scenario import Scenario
from harness.workload.session import Message, Segment, Turn


def shared_segment(kind: str, tokens: int | Uniform | LogNormal, scenario: Scenario, seed: str) -> Segment | None:
    """The segment of this kind that all sessions of the scenario share; None if it has no tokens."""
    drawn = Draws(scenario.seed, "shared").length(kind, tokens)
    return Segment(kind, content_id(seed, kind), drawn) if drawn else None


def opening(*segments: Segment | None) -> tuple[Message, ...]:
    """One system message of the segments that are there; no message if none is."""
    there = tuple(segment for segment in segments if segment is not None)
    return (Message("system", there),) if there else ()


def turns(
    questions: Iterable[tuple[str, int]], scenario: Scenario, seed: str, number: int, draws: Draws
) -> tuple[Turn, ...]:
    """One turn for each question, given as (kind, tokens); all of their texts belong to session `number` alone."""
    made = []
    for index, (kind, tokens) in enumerate(questions):
        output_tokens = draws.length("output_tokens", scenario.output_tokens)
        made.append(
            Turn(
                index=index,
                question=Message("user", (Segment(kind, content_id(seed, "session", number, kind, index), tokens),)),
                output_tokens=output_tokens,
                reply=Message(
                    "assistant",
                    (Segment("reply", content_id(seed, "session", number, "reply", index), output_tokens),),
                ),
                think_time_s=draws.pause_s("think_time_s", scenario.think_time_s) if index else 0.0,
            )
        )
    return tuple(made)
