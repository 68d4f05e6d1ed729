"""How many sessions arrived in an open loop, beside how many were asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow.compute as pc

from harness.analysis.numbers import count
from harness.analysis.run import LOAD, TargetRun
from harness.workload.arrivals import parse_arrivals
from harness.workload.rate import parse_rate

_SPREAD = {"poisson": 1.0, "constant": 0.0}


@dataclass(frozen=True, slots=True)
class Arrived:
    """Of one target, from the load's start until no session arrived any more."""

    sessions: int
    """Those refused included; those that were under way at the start are not."""
    refused: int
    seconds: float
    asked: float | None
    """The integral of the rate over that time; None: they arrived at the times of a trace."""
    spread: float | None
    """Standard deviation of `sessions` that chance makes, as it is for many: CV of the gaps x sqrt(asked)."""

    def sentence(self) -> str:
        """In words."""
        text = (
            f"Arrivals: {count(self.sessions)} sessions in {self.seconds:.1f} s, {self.sessions / self.seconds:.4g}/s"
        )
        if self.asked is not None:
            text += f" (asked for: {self.asked / self.seconds:.4g}/s"
            text += f"; chance makes it ± {self.spread / self.seconds:.2g}/s)" if self.spread else ")"
        return f"{text}; {count(self.refused)} refused, as all seats were taken" if self.refused else text


def arrived(run: TargetRun) -> Arrived | None:
    """None: it was no open loop, or no load at all."""
    options = run.options
    phases = [phase for phase in run.phases if phase.phase in LOAD]
    if options.get("load") != "open" or not phases:
        return None
    by_user = pc.field("phase").isin(LOAD) & (pc.field("turn") == 0) & pc.field("parent_request").is_null()
    first = run.rows.some(by_user, "status")
    seconds = (max(phase.end_ns for phase in phases) - min(phase.start_ns for phase in phases)) / 1e9
    rate, arrivals = options["rate"], parse_arrivals(options["arrivals"])
    asked = None if rate is None else parse_rate(rate).count(seconds)
    spread = None if asked is None else _SPREAD.get(arrivals.kind, arrivals.cv) * math.sqrt(asked)
    return Arrived(len(first), int((first["status"] == "refused").sum()), seconds, asked, spread)
