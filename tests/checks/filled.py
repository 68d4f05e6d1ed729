"""An engine without a server: prompts go straight to a model of its cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harness.cache.base import CacheModel, Prompt, serve
from harness.cache.prompt import tokens
from harness.checks.sight import Seen, Source
from harness.workload.content import content_id

HEAD, TAIL = 7, 5
"""Tokens of the chat template."""


@dataclass
class Filled:
    """Asks a cache model; what it sees is told by `source` alone."""

    model: CacheModel[Any]
    source: Source = "usage"
    prompts: list[int] = field(default_factory=list)
    """Length of each that was sent."""

    def __call__(self, label: str, tokens: int, counted: bool = True) -> Seen:
        self.prompts.append(tokens)
        prompt = [(1, HEAD), (content_id("filled", label), tokens - HEAD - TAIL), (2, TAIL)]
        cached = serve(self.model, prompt, [(3, 1)])
        return Seen(
            cached if self.source == "usage" else None,
            cached if self.source == "counter" and counted else None,
            5.0 + 0.1 * (tokens - cached) if self.source == "clock" else 20.0,
        )


@dataclass(eq=False)
class Shelf:
    """A cache of `size` prompts, whole or not at all, that drops the `victim`-th of those that it has.

    It is asked by `admit` alone. `refreshes`: a prompt that is found is the youngest then.
    """

    size: int
    refreshes: bool
    victim: int = 0
    kept: list[Prompt] = field(default_factory=list)

    def admit(self, prompt: Prompt) -> ShelfAdmission:
        found = prompt in self.kept
        if found and self.refreshes:
            self.kept.remove(prompt)
            self.kept.append(prompt)
        elif not found:
            if len(self.kept) == self.size:
                self.kept.pop(self.victim)
            self.kept.append(prompt)
        return ShelfAdmission(tokens(prompt) - 1 if found else 0)

    def prefilled(self, admission: ShelfAdmission) -> None: ...

    def finish(self, admission: ShelfAdmission, output: Prompt) -> None: ...

    def abandon(self, admission: ShelfAdmission) -> None: ...

    def clear(self) -> None:
        self.kept = []


@dataclass(frozen=True)
class ShelfAdmission:
    cached_tokens: int
