"""The measured requests of a target held against an objective: how many are beyond each limit, how many meet all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from harness.analysis.run import TargetRun
from harness.slo.judgement import Count
from harness.slo.objective import Limit
from harness.statistics.bunching import Bunch, design_effect, of_sessions

STRETCHES = 20
"""Equal parts of the measured time, to see whether requests that are beyond a limit come at the same time."""
_STARTS = {"ttft": "t_send", "e2e": "t_send", "ttft_due": "t_due"}
"""What a time that is still open at the end of the load counts from."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """Of the measured phase. None: not known."""

    counts: tuple[Count, ...]
    """One for each limit, in their order."""
    requests: int
    """Of which it is known whether they meet every limit."""
    good: int
    """Those that do: answered, and beyond no limit."""
    failed: int
    refused: int
    """Among the failed: not sent, as the harness had no seat left."""
    unknown: int
    """Cancelled at the end of the load, and not late by then: left out."""
    disturbed: int
    """Under way while the harness was the bottleneck: that they are late may be its fault."""
    per_s: float | None
    """Goodput: requests a second that meet every limit (DistServe, OSDI 2024), over the measured phase."""

    @property
    def share(self) -> float | None:
        return self.good / self.requests if self.requests else None


def goodput(run: TargetRun, limits: Sequence[Limit]) -> Goodput:
    """A request that failed or was refused is beyond every limit.

    One that was cancelled at the end of the load is beyond a limit if its time was up by then, else it tells nothing.
    A limit does not apply to a request without that time, such as TPOT where the answer has one token. Requests that
    were under way while the harness was the bottleneck count: slow ones are more often among them than fast ones, so
    without them a load could seem to meet what it does not.
    """
    rows = run.measured  # and not `run.counted`
    phases = [phase for phase in run.phases if phase.phase == "measure"]
    ends_ns = max((phase.end_ns for phase in phases), default=None)
    failed = ~rows["status"].isin(["ok", "cancelled"])
    beyond = [_beyond(rows, failed, limit, ends_ns) for limit in limits]
    late = pd.Series(False, index=rows.index)
    for one in beyond:
        late |= one.fillna(False).astype(bool)
    ok = rows["status"] == "ok"
    good = int((ok & ~late).sum())
    measured_s = sum(phase.end_ns - phase.start_ns for phase in phases) / 1e9
    return Goodput(
        counts=tuple(_count(rows, limit, one) for limit, one in zip(limits, beyond, strict=True)),
        requests=int((ok | late).sum()),
        good=good,
        failed=int(failed.sum()),
        refused=int((rows["status"] == "refused").sum()),
        unknown=int((~ok & ~late).sum()),
        disturbed=len(rows) - len(run.counted),
        per_s=good / measured_s if measured_s else None,
    )


def _beyond(rows: pd.DataFrame, failed: pd.Series, limit: Limit, ends_ns: int | None) -> pd.Series:
    """True, False, or null where it is not known or does not apply."""
    found = pd.Series(pd.NA, index=rows.index, dtype="boolean")
    if limit.limit_ms is None:
        found[rows["status"] == "ok"] = False
    else:
        times_ms = rows[f"{limit.measure}_ms"]
        known = times_ms.notna()
        found[known] = times_ms[known] >= limit.limit_ms
        start = _STARTS.get(limit.measure)
        if ends_ns is not None and start is not None:
            is_up = (rows[start] + round(limit.limit_ms * 1e6) <= ends_ns).fillna(False).astype(bool)
            found[~known & (rows["status"] == "cancelled") & is_up] = True
    found[failed] = True
    return found


def _count(rows: pd.DataFrame, limit: Limit, beyond: pd.Series) -> Count:
    known = beyond.notna()
    late, of = beyond[known].astype(bool), rows[known]
    if of.empty:
        return Count(limit, 0, 0)
    due_ns = of["t_due"].astype("int64")
    length_ns = int(due_ns.max() - due_ns.min()) + 1
    stretch = (due_ns - due_ns.min()) * STRETCHES // length_ns
    effect = max(of_sessions(_bunches(late, of["session"])), design_effect(_bunches(late, stretch)))
    return Count(limit, int(late.sum()), len(of), effect)


def _bunches(late: pd.Series, by: pd.Series) -> list[Bunch]:
    groups = late.groupby(by.to_numpy())
    return [(int(beyond), int(of)) for beyond, of in zip(groups.sum(), groups.size(), strict=True)]
