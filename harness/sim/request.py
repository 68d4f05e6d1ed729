"""A generation as the scheduler sees it: how much of it is computed, and what it has of the cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from harness.sim.generation import Generation

H = TypeVar("H")
"""What a request has of one manner's cache."""


@dataclass(slots=True, eq=False)
class Request(Generic[H]):
    """One generation under way. Its sequence is the prompt and what was said so far."""

    generation: Generation
    hold: H
    next_token: Callable[[], int]
    """The next token of the answer."""
    tokens: int
    """Of the sequence."""
    end_tokens: int
    """Of the sequence when the answer has its full length."""
    computed: int = 0
    """Tokens of the sequence in the KV cache; all but the last while it decodes."""
    lost: int = 0
    """What `computed` was before a preemption, at most."""
    decoding: bool = False
    """All but its last token is computed: it goes on by one token a step."""

    @property
    def prompt_tokens(self) -> int:
        return len(self.generation.prompt_ids)

    @property
    def left(self) -> int:
        """Tokens of the sequence that are to be computed."""
        return self.tokens - self.computed

    def lose(self) -> None:
        """What it had in the KV cache is gone: it is to be computed again."""
        self.lost = max(self.lost, self.computed)
        self.computed, self.decoding = 0, False
        self.generation.preemptions += 1


@dataclass(slots=True)
class Plan(Generic[H]):
    """What one step computes."""

    parts: list[tuple[Request[H], int]] = field(default_factory=list)
    """Requests with the number of their tokens that are computed: of their prompts, or of what a preemption lost."""
    decodes: list[Request[H]] = field(default_factory=list)
    """Requests that go on by one token."""
    padding_tokens: int = 0
    """Computed for nothing, as sequences are filled up to the longest."""
    preempted: list[Request[H]] = field(default_factory=list)
    refused: list[Request[H]] = field(default_factory=list)
    """Ended without an answer, as they do not fit."""

    @property
    def works(self) -> bool:
        return bool(self.parts or self.decodes)
