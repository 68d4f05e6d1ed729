"""TTFT and hit rate by the number of the turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.analysis.grouped import quantiles_of
from harness.report.pieces import LAST_TURN
from harness.report.source import Source


@dataclass(frozen=True, slots=True)
class Turn:
    turn: int
    """From 0; `LAST_TURN`: this one and later ones."""
    requests: int
    timed: int
    """Successful ones whose TTFT counts."""
    ttft_p50_ms: float | None
    ttft_p90_ms: float | None
    rate: float | None
    """Cached / prompt tokens of all measured requests that report both; None: none does."""

    @property
    def name(self) -> str:
        return f"{self.turn} and later" if self.turn == LAST_TURN else str(self.turn)


def turns(source: Source) -> list[Turn]:
    """Of requests that belong to a session."""
    ttft = quantiles_of(source.timed.turn, source.timed.ttft_ms, (0.5, 0.9))
    tokens = source.by_turn
    found = []
    for turn in np.flatnonzero(tokens.requests).tolist():
        timed, (p50_ms, p90_ms) = ttft.get(turn, (0, (None, None)))
        prompt = int(tokens.prompt_tokens[turn])
        rate = int(tokens.cached_tokens[turn]) / prompt if prompt else None
        found.append(Turn(turn, int(tokens.requests[turn]), timed, p50_ms, p90_ms, rate))
    return found
