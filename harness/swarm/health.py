"""How the harness itself is doing: a greenlet that wakes on a grid, and makes one row of `harness_health` a second."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import gevent

from harness.record.schema import HARNESS_HEALTH
from harness.record.writer import PartStore, PartWriter

TICK_NS = 50_000_000
"""Short enough that a second has twenty instants to judge by, long enough to cost next to nothing."""
ROW_NS = 1_000_000_000
RECENT = 10
"""More rows are not kept for a page that does not ask."""

_STATM = "/proc/self/statm"


class Ticks:
    """Instants on an absolute grid, and how late the event loop came to each. Times are monotonic, in ns."""

    def __init__(self, start_ns: int) -> None:
        self._due_ns = start_ns + TICK_NS
        self._late_ms: list[float] = []

    def wait_s(self, now_ns: int) -> float:
        """How long to sleep until the next one."""
        return max(0, self._due_ns - now_ns) / 1e9

    def meet(self, now_ns: int) -> None:
        """Call after that sleep. Instants that passed meanwhile were met late, too: a long stall counts in full."""
        self._late_ms.append(max(0, now_ns - self._due_ns) / 1e6)
        self._due_ns += TICK_NS
        while self._due_ns <= now_ns:
            self._late_ms.append((now_ns - self._due_ns) / 1e6)
            self._due_ns += TICK_NS

    def take(self) -> tuple[float | None, float | None]:
        """Median and maximum of the lateness in ms since the last call; None: no instant was met."""
        late_ms, self._late_ms = self._late_ms, []
        return (median(late_ms), max(late_ms)) if late_ms else (None, None)


class CollectorPauses:
    """How long Python's garbage collector held up everything, from now until `close`."""

    def __init__(self) -> None:
        self._began_ns = 0
        self._pauses_ms: list[float] = []
        gc.callbacks.append(self._on_collection)

    def _on_collection(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began_ns = time.monotonic_ns()
        elif self._began_ns:
            self._pauses_ms.append((time.monotonic_ns() - self._began_ns) / 1e6)

    def take(self) -> list[float]:
        """The pauses in ms since the last call."""
        pauses_ms, self._pauses_ms = self._pauses_ms, []
        return pauses_ms

    def close(self) -> None:
        gc.callbacks.remove(self._on_collection)


def no_load() -> dict[str, int | None]:
    """The gauges of the master."""
    return {"live_sessions": None, "streams": None, "rows_waiting": None}


class HealthWatch:
    """Makes and writes the rows of one process in one leg, from now until `close`."""

    def __init__(
        self,
        run_id: str,
        leg: int,
        worker: int,
        store: str | PartStore,
        gauges: Callable[[], Mapping[str, int | None]] = no_load,
        clock_ahead_ns: int = 0,
    ) -> None:
        """`worker`: -1 is the master. `gauges` tells live_sessions, streams and rows_waiting when a row ends.

        `clock_ahead_ns`: as in the plan.
        """
        self._labels = {"run_id": run_id, "worker": worker}
        name = "master" if worker < 0 else f"{worker:04d}"
        self._writer = PartWriter(
            store,
            f"harness_health/part-{leg}-{name}",
            HARNESS_HEALTH,
            in_thread=gevent.get_hub().threadpool.apply,
            clock_ahead_ns=clock_ahead_ns,
        )
        self._gauges = gauges
        self._socket_errors = 0
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._pauses = CollectorPauses()
        self._began_ns, self._began_monotonic_ns, self._cpu_s = time.time_ns(), time.monotonic_ns(), cpu_s()
        self._ticks = Ticks(self._began_monotonic_ns)
        self._greenlet = gevent.spawn(self._watch)

    def count_socket_error(self) -> None:
        """A connection could not be opened, or broke."""
        self._socket_errors += 1

    @property
    def parts(self) -> list[tuple[str, int]]:
        """(name, rows) of each part written."""
        return self._writer.parts

    def take_recent(self) -> list[dict[str, Any]]:
        """The rows since the last call, at most the newest `RECENT`."""
        rows = list(self._recent)
        self._recent.clear()
        return rows

    def flush(self) -> None:
        """Write the rows so far. Raises OSError if they cannot be written; they are kept for the next flush then."""
        self._writer.flush()

    def close(self) -> None:
        """Stop watching; what has passed of the last second is a row, too. `flush` writes it."""
        self._greenlet.kill()
        now_ns = time.monotonic_ns()
        if not self._ticks.wait_s(now_ns):  # the loop was held up, and this greenlet came first
            self._ticks.meet(now_ns)
        self._end_row()
        self._pauses.close()

    def _watch(self) -> None:
        while True:
            gevent.sleep(self._ticks.wait_s(time.monotonic_ns()))
            now_ns = time.monotonic_ns()
            self._ticks.meet(now_ns)
            if now_ns - self._began_monotonic_ns >= ROW_NS:
                self._end_row()

    def _end_row(self) -> None:
        time_ns, now_ns = time.time_ns(), time.monotonic_ns()
        span_ns = now_ns - self._began_monotonic_ns
        used_s, pauses_ms = cpu_s(), self._pauses.take()
        lag_p50_ms, lag_max_ms = self._ticks.take()
        row = {
            **self._labels,
            "t_ns": self._began_ns,
            "span_ms": span_ns / 1e6,
            "loop_lag_p50_ms": lag_p50_ms,
            "loop_lag_max_ms": lag_max_ms,
            "cpu_share": (used_s - self._cpu_s) / (span_ns / 1e9),
            "gc_pauses": len(pauses_ms),
            "gc_pause_ms": sum(pauses_ms),
            "gc_longest_ms": max(pauses_ms, default=0.0),
            "socket_errors": self._socket_errors,
            **self._gauges(),
            "rss_bytes": rss_bytes(),
        }
        self._writer.add(row)
        self._recent.append(row)
        self._socket_errors = 0
        self._began_ns, self._began_monotonic_ns, self._cpu_s = time_ns, now_ns, used_s


def cpu_s() -> float:
    """CPU time of this process so far, of all its threads, in user and system mode."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss_bytes() -> int | None:
    """Memory of this process that is in RAM; None where the system does not tell it in a file."""
    if sys.platform != "linux":
        return None
    with open(_STATM) as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
