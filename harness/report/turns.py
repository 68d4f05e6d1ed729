"""TTFT and hit rate by the number of the turn."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.source import Source

LAST = 40
"""Later turns are taken together."""


@dataclass(frozen=True, slots=True)
class Turn:
    turn: int
    """From 0; `LAST`: this one and later ones."""
    requests: int
    timed: int
    """Successful ones whose TTFT counts."""
    ttft_p50_ms: float | None
    ttft_p90_ms: float | None
    rate: float | None
    """Cached / prompt tokens of all measured requests that report both; None: none does."""

    @property
    def name(self) -> str:
        return f"{self.turn} and later" if self.turn == LAST else str(self.turn)


def turns(source: Source) -> list[Turn]:
    """Of requests that belong to a session."""
    rows = source.ask(
        f"""
        WITH tokens AS (
            SELECT least(turn, {LAST}) AS turn, count(*) AS requests,
                   sum(prompt_tokens) FILTER (cached_tokens IS NOT NULL) AS prompt,
                   sum(cached_tokens) FILTER (prompt_tokens IS NOT NULL) AS cached
            FROM measured WHERE turn IS NOT NULL GROUP BY 1
        ), times AS (
            SELECT least(turn, {LAST}) AS turn, count(ttft_ms) AS n, quantile_cont(ttft_ms, [0.5, 0.9]) AS ttft
            FROM timed WHERE ttft_ms IS NOT NULL AND turn IS NOT NULL GROUP BY 1
        )
        SELECT turn, requests, coalesce(n, 0), ttft[1], ttft[2], cached::DOUBLE / nullif(prompt, 0)
        FROM tokens LEFT JOIN times USING (turn) ORDER BY turn
        """
    )
    return [Turn(*row) for row in rows]
