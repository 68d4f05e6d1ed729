"""All that the plots of one side show, worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.flags import Flag, doubts, flags
from harness.report import distances, hits, tails, turns
from harness.report.measured import OverTime
from harness.report.prefill import Prefill
from harness.report.side import Side
from harness.report.verdict import verdict


@dataclass(frozen=True, slots=True)
class Findings:
    side: Side
    number: int
    verdict: Sequence[str]
    flags: Sequence[Flag]
    over_time: OverTime | None
    """None: no measured request was sent."""
    expected: Sequence[hits.Rate]
    """By tenths of the time."""
    measured: Sequence[hits.Rate]
    """By requests, in the stretches of `expected`."""
    prefill: Prefill
    ttft: Sequence[tails.Tail]
    tpot: Sequence[tails.Tail]
    turns: Sequence[turns.Turn]
    reuse: distances.Reuse | None

    def name(self, plot: str) -> str:
        """Of a plot of this side."""
        return f"{plot}-{self.number}" if self.side.name else plot


def find(side: Side, number: int) -> Findings:
    seen = side.measured
    return Findings(
        side=side,
        number=number,
        verdict=verdict(side.summary, seen.ttft, seen.prefill, doubts(side.summary, side.run.problems)),
        flags=tuple(flags(side.summary, side.run.problems)),
        over_time=seen.over_time,
        expected=hits.by_tenths(side.summary, "expected"),
        measured=hits.by_tenths(side.summary, "measured"),
        prefill=seen.prefill,
        ttft=seen.ttft,
        tpot=seen.tpot,
        turns=seen.turns,
        reuse=side.reuse,
    )
