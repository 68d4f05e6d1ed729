"""Simulated time, and runs on it alone."""

from __future__ import annotations

import time
from collections.abc import Iterable

from harness.sim.generation import Generation
from harness.sim.scheduler import Scheduler


class ScaledClock:
    """Runs with the machine's monotonic clock: `time_scale` simulated seconds pass in each of its seconds."""

    def __init__(self, time_scale: float = 1.0) -> None:
        self.time_scale = time_scale
        self._start_ns = time.monotonic_ns()

    def now_s(self) -> float:
        """Simulated seconds since the engine's start."""
        return (time.monotonic_ns() - self._start_ns) * 1e-9 * self.time_scale

    def wall_s(self, until_s: float) -> float:
        """Seconds of the machine's clock until the simulated time `until_s`; negative if it is past."""
        return (until_s - self.now_s()) / self.time_scale


class VirtualClock:
    """Goes as fast as it is asked: who wants to know how long to wait until some time is at that time at once."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def wall_s(self, until_s: float) -> float:
        """0; it is `until_s` now, or as late as it was."""
        self._now_s = max(self._now_s, until_s)
        return 0.0


def play(scheduler: Scheduler, arrivals: Iterable[tuple[float, Generation]]) -> float:
    """Run requests on virtual time until all have ended; the time of that.

    `arrivals`: (seconds, request) in the order of time. Steps follow each other without a gap as long as there is
    something to do.
    """
    coming = iter(arrivals)
    following = next(coming, None)
    now_s = 0.0
    while True:
        step = scheduler.begin(now_s)
        if step is None and following is None:
            return now_s
        until_s = step.ended_s if step is not None else following[0] if following is not None else now_s
        while following is not None and following[0] <= until_s:
            scheduler.submit(following[1], following[0])
            following = next(coming, None)
        if step is not None:
            scheduler.complete(step)
        now_s = max(now_s, until_s)
