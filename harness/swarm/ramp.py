"""The first part of a load, which is not measured: until Locust has started all users, and the warm-up is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gevent

from harness.swarm.plan import LoadPlan

RAMP = "ramp"
"""Phase of the requests that are sent in it."""


class Ramp:
    """Of one leg of a run, in one process."""

    def __init__(self, load: LoadPlan) -> None:
        self._warm_ns = load.start_ns + round(load.warm_up_s * 1e9)
        self._is_none = not load.ramps and not load.warm_up_s
        self.ends_ns: int | None = None if load.ramps else self._warm_ns
        """None: not all users are there yet."""

    def is_over(self, time_ns: int) -> bool:
        """Whether what is sent at `time_ns` is measured."""
        return self.ends_ns is not None and time_ns >= self.ends_ns

    def all_users_started(self) -> float | None:
        """Locust says so. Returns in how many seconds the ramp ends; None: it is over, or there was none."""
        now_ns = time.time_ns()
        if self._is_none or self.is_over(now_ns):
            return None
        self.ends_ns = max(now_ns, self._warm_ns)
        return (self.ends_ns - now_ns) / 1e9


def attach(environment: Any, runner: Any, ramp: Callable[[], Ramp | None]) -> None:
    """Tell the ramp of the leg that is on when Locust has started all users; Locust's statistics begin anew at its end.

    `ramp` gives it, or None if no leg is on.
    """

    def on_spawning_complete(**_: Any) -> None:
        current = ramp()
        left_s = None if current is None else current.all_users_started()
        if left_s is not None:
            gevent.spawn_later(left_s, reset, current)

    def reset(before: Ramp) -> None:
        if ramp() is before:
            runner.stats.reset_all()

    environment.events.spawning_complete.add_listener(on_spawning_complete)
