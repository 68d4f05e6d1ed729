"""A step of a simulated engine, and who is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.sim.generation import Generation
from harness.sim.request import Plan


@dataclass(slots=True, eq=False)
class Step:
    """One step of the engine: what it computes, and how long it takes."""

    plan: Plan[Any]
    began_s: float
    duration_s: float
    prompt_tokens: int
    """New tokens of prompts, and those that are computed again after a preemption."""
    context_tokens: int
    """Tokens of KV cache that were there before and are read."""
    admitted: Sequence[Generation]
    """Those that are scheduled for the first time."""

    @property
    def ended_s(self) -> float:
        return self.began_s + self.duration_s

    @property
    def cached_tokens(self) -> int:
        """Taken from the cache by those that are admitted."""
        return sum([one.cached_tokens or 0 for one in self.admitted])

    @property
    def decoding(self) -> int:
        """Requests that go on with their answer by one token."""
        return len(self.plan.decodes)

    @property
    def decodes(self) -> list[Generation]:
        return [request.generation for request in self.plan.decodes]

    @property
    def prefills(self) -> list[tuple[Generation, int]]:
        """Requests with the number of their tokens that make up `prompt_tokens`."""
        return [(request.generation, new) for request, new in self.plan.parts]


class Observer(Protocol):
    """Told of everything that an engine's metrics page counts; all calls come from within the scheduler's methods."""

    def arrived(self, generation: Generation) -> None:
        """In `submit`, of every request."""

    def admitted(self, generation: Generation) -> None:
        """In `begin`, once: it is scheduled for the first time; `admitted_s`, `cached_tokens` and `slot` are known."""

    def first_token(self, generation: Generation) -> None:
        """In `complete`: its prompt is computed, `first_token_s` is known, the token is in `output_ids`."""

    def stepped(self, step: Step) -> None:
        """In `complete`, before what follows for the requests of the step."""

    def preempted(self, generation: Generation) -> None:
        """In `begin`: it lost its room and waits again (vLLM's preemption, SGLang's retraction)."""

    def ended(self, generation: Generation) -> None:
        """In `complete`, `abort`, or at its refusal in `submit` or `begin`: `end` and `ended_s` are known."""
