"""Scrapes that show more running requests than the run had in flight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from harness.analysis.counters import metric_of
from harness.analysis.pages import Replica, clock_time, series_of
from harness.analysis.run import TargetRun

Ints = npt.NDArray[np.int64]
MARGIN_NS = 200_000_000
"""How long before and after a request the engine may count it among the running ones, clocks being what they are."""

_STALE_GAUGES = ("sglang",)
"""Engines whose number of running requests can be of any moment before."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A scrape that shows more running requests than this run had in flight."""

    running: int
    own: int
    """Most that can have been in flight around that moment."""
    time_ns: int
    scrapes: int
    """That show more, in all; this one shows most."""

    def sentence(self) -> str:
        """In words."""
        more = f", as {self.scrapes - 1} more scrapes do" if self.scrapes > 1 else ""
        return (
            f"at {clock_time(self.time_ns)} UTC the server had {self.running} requests running, and this run at most "
            f"{self.own} in flight{more}: another client used it, or rows of the run are missing"
        )


def find_crowd(run: TargetRun, pages: Sequence[Replica]) -> Crowd | None:
    """Of each scrape in the measured phase, and of each replica by itself, as no row says which one answered it."""
    if run.target.identity.get("engine") in _STALE_GAUGES:
        return None
    scrapes = list(_running(run, pages))
    if not scrapes:
        return None
    begun, done = _own(run, scrapes)
    found = [
        (round(running), own, time_ns)
        for (time_ns, _, running), own in zip(scrapes, (begun - done).tolist(), strict=True)
        if own < running < math.inf
    ]
    if not found:
        return None
    running, own, time_ns = max(found, key=lambda scrape: scrape[0] - scrape[1])
    return Crowd(running, own, time_ns, len(found))


def _own(run: TargetRun, scrapes: Sequence[tuple[int, int, float]]) -> tuple[Ints, Ints]:
    """Shapes (scrapes,): requests sent before the page had come, and those that ended before it was asked for."""
    asked = np.array([time_ns - MARGIN_NS for time_ns, _, _ in scrapes])
    came = np.array([until_ns + MARGIN_NS for _, until_ns, _ in scrapes])
    begun, done = np.zeros(len(scrapes), dtype=np.int64), np.zeros(len(scrapes), dtype=np.int64)
    for rows in run.rows.pieces("t_send", "t_end"):
        sent = rows[rows["t_send"].notna()]
        begun += _at_most(sent["t_send"].to_numpy(dtype=np.int64), came)
        # A request without an end may be with the engine as long as it likes.
        done += _at_most(sent["t_end"].dropna().to_numpy(dtype=np.int64), asked - 1)
    return begun, done


def _at_most(stamps: Ints, limits: Ints) -> Ints:
    """Shape (limits,): how many of the stamps are at or below each limit. The limits need not be in order."""
    order = np.argsort(limits)
    first = np.searchsorted(limits[order], stamps)
    counts = np.empty(len(limits), dtype=np.int64)
    counts[order] = np.bincount(first, minlength=len(limits) + 1)[:-1].cumsum()
    return counts


def _running(run: TargetRun, pages: Sequence[Replica]) -> Iterator[tuple[int, int, float]]:
    """(when the page was asked for, when it had come, running requests)."""
    metric = metric_of(run.target.metrics, "running_requests")
    if metric is None:
        return
    samples = run.samples.some(pc.field("name") == "scrape_duration_seconds", "t_ns", "value")
    durations = samples.groupby("t_ns")["value"].max().to_dict()
    phases = [phase for phase in run.phases if phase.phase == "measure"]
    for replica in pages:
        for time_ns, page in replica.pages.items():
            if any(phase.start_ns <= time_ns <= phase.end_ns for phase in phases):
                series = next((found for name in metric.names if (found := series_of(page, metric, name))), {})
                yield time_ns, time_ns + round(durations.get(time_ns, 0.0) * 1e9), sum(series.values())
