"""Whether the harness itself was the bottleneck, when, and which requests were under way then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.analysis.numbers import UNKNOWN, count, milliseconds, percent
from harness.record.bottleneck import Bottleneck, bottleneck


@dataclass(frozen=True, slots=True)
class Marked:
    """A second of one process in which the harness was the bottleneck."""

    worker: int
    """-1: the master."""
    start_ns: int
    end_ns: int
    why: Bottleneck


@dataclass(frozen=True, slots=True)
class Health:
    """Of the workers, while the measured requests of one target were under way."""

    seconds: int
    """Rows of workers; 0: the run did not record them."""
    marked: tuple[Marked, ...]
    """Those of them in which the harness was the bottleneck."""
    requests: int
    """Measured requests under way in a marked second of their worker."""
    measured: int
    """Of so many."""
    left_out: bool
    """Whether they are left out of all times."""
    loop_lag_max_ms: float | None
    """Most that anything waited for an event loop; None: not known."""
    cpu_share_max: float | None
    """Largest share of a core that a worker used in a second."""
    socket_errors: int | None
    """Requests whose connection could not be opened, or broke."""

    def warning(self) -> str | None:
        """A sentence if the harness was the bottleneck at any time."""
        if not self.marked:
            return None
        whys = [mark.why for mark in self.marked]
        by_why = ", ".join(f"{whys.count(why)} {why}" for why in ("stall", "lag", "cpu") if why in whys)
        text = f"the harness was the bottleneck in {len(self.marked)} of {self.seconds} worker seconds ({by_why}); "
        if not self.requests:
            return f"{text}no measured request was under way then"
        text += f"{count(self.requests)} of {count(self.measured)} measured requests were under way then, and "
        return text + (
            "are left out of all times (--all-requests counts them)"
            if self.left_out
            else "count all the same (--all-requests)"
        )

    def sentence(self) -> str:
        """How the workers did, in words."""
        if not self.seconds:
            return f"{UNKNOWN} (harness health was not recorded)"
        lag, share = milliseconds(self.loop_lag_max_ms), percent(self.cpu_share_max)
        text = f"loop late by at most {lag} ms, at most {share} of a core"
        if self.socket_errors:
            text += f", {count(self.socket_errors)} socket errors"
        return f"{text}; the bottleneck in {len(self.marked) or 'none'} of {self.seconds} worker seconds"


def marked_seconds(health: pd.DataFrame) -> list[Marked]:
    """The rows of `harness_health` in which the harness was the bottleneck, in the order of time."""
    columns = ["worker", "t_ns", "span_ms", "loop_lag_p50_ms", "loop_lag_max_ms", "cpu_share"]
    marked = []
    for worker, t_ns, span_ms, p50_ms, max_ms, cpu_share in health[columns].itertuples(index=False):
        p50_ms, max_ms = (None if pd.isna(lag_ms) else lag_ms for lag_ms in (p50_ms, max_ms))
        if (why := bottleneck(span_ms, p50_ms, max_ms, cpu_share)) is not None:
            marked.append(Marked(int(worker), int(t_ns), int(t_ns) + round(span_ms * 1e6), why))
    return sorted(marked, key=lambda mark: mark.start_ns)


def disturbed(requests: pd.DataFrame, marked: Iterable[Marked]) -> pd.Index:
    """Labels of the rows of `requests` that were due or under way in a marked second of their own worker.

    A request counts from when its worker should have sent it to the last that is known of it.
    """
    begins, ends = _times(requests)
    hit = np.zeros(len(requests), dtype=bool)
    by_worker: dict[int, list[Marked]] = {}
    for mark in marked:
        by_worker.setdefault(mark.worker, []).append(mark)
    workers = requests["worker"].to_numpy(dtype=np.int64)
    for worker, marks in by_worker.items():
        starts_ns = np.array([mark.start_ns for mark in marks])
        ends_ns = np.array([mark.end_ns for mark in marks])
        own = workers == worker
        # The seconds of a process follow each other: the first that ends later decides.
        place = np.searchsorted(ends_ns, begins[own], side="right")
        reachable = place < len(marks)
        hit[own] = reachable & (starts_ns[np.minimum(place, len(marks) - 1)] <= ends[own])
    return requests.index[hit]


def _times(requests: pd.DataFrame) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of each request: when it should have been sent, and the last that is known of it, in ns."""
    due = requests["t_due"].to_numpy(dtype=np.int64)
    late_ns = (requests["late_ms"].fillna(0.0) * 1e6).round().to_numpy(dtype=np.int64)
    sent = requests["t_send"].to_numpy(dtype=np.int64, na_value=-1)
    begins = np.where(sent < 0, due, sent - late_ns)
    stamps = [requests[name].to_numpy(dtype=np.int64, na_value=-1) for name in ("t_send", "t_first", "t_last", "t_end")]
    return begins, np.maximum.reduce([begins, *stamps])


def health_of(requests: pd.DataFrame, health: pd.DataFrame, all_requests: bool) -> Health:
    """Of one target: `requests` are its measured ones, all of them; `health` are the rows of all processes."""
    begins, ends = _times(requests)
    during = health.iloc[:0]
    if len(requests):
        row_ends = health["t_ns"] + (health["span_ms"] * 1e6).astype("int64")
        during = health[(health["worker"] >= 0) & (row_ends > begins.min()) & (health["t_ns"] <= ends.max())]
    marked = marked_seconds(during)
    return Health(
        seconds=len(during),
        marked=tuple(marked),
        requests=len(disturbed(requests, marked)),
        measured=len(requests),
        left_out=not all_requests,
        loop_lag_max_ms=_largest(during["loop_lag_max_ms"]),
        cpu_share_max=_largest(during["cpu_share"]),
        socket_errors=int(during["socket_errors"].sum()) if len(during) else None,
    )


def _largest(values: pd.Series) -> float | None:
    return None if values.isna().all() else float(values.max())
