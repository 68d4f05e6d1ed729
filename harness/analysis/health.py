"""Whether the harness itself was the bottleneck, when, and which requests were under way then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.analysis.numbers import UNKNOWN, count, percent, with_unit
from harness.analysis.rows import Rows
from harness.record.bottleneck import Bottleneck, bottleneck

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
_STAMPS = ("t_due", "t_send", "t_first", "t_last", "t_end")


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
        lag, share = with_unit(self.loop_lag_max_ms), percent(self.cpu_share_max)
        text = f"loop late by at most {lag}, at most {share} of a core"
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


@dataclass(frozen=True, slots=True)
class Times:
    """When the requests of one target were under way."""

    disturbed: Bools
    """Shape (requests,): whether they were in a marked second of their own worker."""
    first_ns: int | None
    """When the first measured one should have been sent; None: there is none."""
    last_ns: int | None
    """The last that is known of the measured ones."""
    first_sent_ns: int | None
    """When the first measured one was sent; None: none was."""
    last_answer_ns: int | None
    """The last that is known of those that were sent."""


def times_of(rows: Rows, marked: Sequence[Marked], is_measured: Bools) -> Times:
    """`is_measured` has the shape (rows,)."""
    hit, start = [], 0
    spans: list[tuple[int, int]] = []
    sent_spans: list[tuple[int, int]] = []
    for piece in rows.pieces("worker", "late_ms", *_STAMPS):
        begins, ends = _times(piece)
        hit.append(_disturbed(piece["worker"], begins, ends, marked))
        measured = is_measured[start : start + len(piece)]
        start += len(piece)
        sent = piece["t_send"].to_numpy(dtype=np.int64, na_value=-1)
        is_sent = measured & (sent >= 0)
        spans += _span(begins[measured], ends[measured])
        sent_spans += _span(sent[is_sent], ends[is_sent])
    return Times(np.concatenate(hit), *_whole(spans), *_whole(sent_spans))


def _span(begins: Ints, ends: Ints) -> list[tuple[int, int]]:
    """The first and the last of some stamps; empty: there are none."""
    return [(int(begins.min()), int(ends.max()))] if len(begins) else []


def _whole(spans: Sequence[tuple[int, int]]) -> tuple[int | None, int | None]:
    return min((first for first, _ in spans), default=None), max((last for _, last in spans), default=None)


def disturbed(requests: pd.DataFrame, marked: Iterable[Marked]) -> pd.Index:
    """Labels of the rows of `requests` that were due or under way in a marked second of their own worker.

    A request counts from when its worker should have sent it to the last that is known of it.
    """
    return requests.index[_disturbed(requests["worker"], *_times(requests), marked)]


def _disturbed(workers: pd.Series, begins: Ints, ends: Ints, marked: Iterable[Marked]) -> Bools:
    hit = np.zeros(len(workers), dtype=bool)
    by_worker: dict[int, list[Marked]] = {}
    for mark in marked:
        by_worker.setdefault(mark.worker, []).append(mark)
    places = workers.to_numpy(dtype=np.int64)
    for worker, marks in by_worker.items():
        starts_ns = np.array([mark.start_ns for mark in marks])
        ends_ns = np.array([mark.end_ns for mark in marks])
        own = places == worker
        # The seconds of a process follow each other: the first that ends later decides.
        place = np.searchsorted(ends_ns, begins[own], side="right")
        reachable = place < len(marks)
        hit[own] = reachable & (starts_ns[np.minimum(place, len(marks) - 1)] <= ends[own])
    return hit


def _times(requests: pd.DataFrame) -> tuple[Ints, Ints]:
    """Of each request: when it should have been sent, and the last that is known of it, in ns."""
    due = requests["t_due"].to_numpy(dtype=np.int64)
    late_ns = (requests["late_ms"].fillna(0.0) * 1e6).round().to_numpy(dtype=np.int64)
    sent = requests["t_send"].to_numpy(dtype=np.int64, na_value=-1)
    begins = np.where(sent < 0, due, sent - late_ns)
    ends = np.maximum(begins, sent)
    for name in ("t_first", "t_last", "t_end"):
        np.maximum(ends, requests[name].to_numpy(dtype=np.int64, na_value=-1), out=ends)
    return begins, ends


def health_of(times: Times, is_measured: Bools, health: pd.DataFrame, all_requests: bool) -> Health:
    """Of one target, from its requests' times; `health` are the rows of all processes."""
    during = health.iloc[:0]
    if times.first_ns is not None and times.last_ns is not None:
        row_ends = health["t_ns"] + (health["span_ms"] * 1e6).astype("int64")
        during = health[(health["worker"] >= 0) & (row_ends > times.first_ns) & (health["t_ns"] <= times.last_ns)]
    return Health(
        seconds=len(during),
        marked=tuple(marked_seconds(during)),
        requests=int((is_measured & times.disturbed).sum()),
        measured=int(is_measured.sum()),
        left_out=not all_requests,
        loop_lag_max_ms=_largest(during["loop_lag_max_ms"]),
        cpu_share_max=_largest(during["cpu_share"]),
        socket_errors=int(during["socket_errors"].sum()) if len(during) else None,
    )


def _largest(values: pd.Series) -> float | None:
    return None if values.isna().all() else float(values.max())
