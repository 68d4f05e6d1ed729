"""Requests as a worker tells them while a run goes on: what the cache models need to know of each, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Told(NamedTuple):
    """A request that ended, as plain values in this order; stamps are by the run's clock."""

    target: int
    """Its number within the run."""
    session: int | None
    turn: int | None
    t_send: int
    t_first: int | None
    t_last: int | None
    t_end: int | None
    status: str
    planned_output_tokens: int
    output_tokens: int | None
    slot: int | None
    replica: str | None
    cache_salt: str | None
    reports: bool
    """It reports both its cached and its prompt tokens."""
    same: int
    """So many segments of its path are those with which the path of the request began that the same worker told last
    of the same session; `path` and `path_tokens` are the rest."""
    path: list[int]
    path_tokens: list[int]


PATHS_KEPT = 2_048
"""Of so many sessions, those told last, both sides keep the path that was told last; `same` is 0 for all others."""
MOST_SEGMENTS = 200_000
"""Of the paths between two reports, some 2.5 MB: whoever sends more tells nothing any more."""

_Path = tuple[Sequence[int], Sequence[int]]


class RequestNews:
    """Of one worker in one leg of a run."""

    def __init__(self, targets: Mapping[str, int], clock_ahead_ns: int = 0) -> None:
        """`targets`: name -> number within the run. `clock_ahead_ns`: taken off all stamps, as in the rows."""
        self._targets = targets
        self._clock_ahead_ns = clock_ahead_ns
        self._told: list[Told] = []
        self._segments = 0
        self._reports = 0
        self._paths: dict[tuple[int, int | None], _Path] = {}
        """Target and session -> path of its last request; the one told longest ago comes first."""

    def add(self, row: Mapping[str, Any]) -> None:
        """A finished request, given as its row in the request table; one that was not sent is no news."""
        if row["t_send"] is None or self._segments > MOST_SEGMENTS:
            return
        target, session = self._targets[row["target"]], row["session"]
        path, lengths = row["path"], row["path_tokens"]
        same = _same(self._paths.pop((target, session), ((), ())), (path, lengths))
        self._paths[target, session] = (path, lengths)
        if len(self._paths) > PATHS_KEPT:
            del self._paths[next(iter(self._paths))]
        self._segments += len(path) - same
        self._told.append(
            Told(
                target=target,
                session=session,
                turn=row["turn"],
                t_send=row["t_send"] - self._clock_ahead_ns,
                t_first=self._stamp(row["t_first"]),
                t_last=self._stamp(row["t_last"]),
                t_end=self._stamp(row["t_end"]),
                status=row["status"],
                planned_output_tokens=row["planned_output_tokens"],
                output_tokens=row["output_tokens"],
                slot=row["slot"],
                replica=row["replica"],
                cache_salt=row["cache_salt"],
                reports=row["cached_tokens"] is not None and row["prompt_tokens"] is not None,
                same=same,
                path=path[same:],
                path_tokens=lengths[same:],
            )
        )

    def take(self, until_ns: int) -> dict[str, Any]:
        """What is new, as plain values. Whatever was sent before `until_ns`, by this machine's clock, has been told."""
        is_full = self._segments > MOST_SEGMENTS
        told, self._told = self._told, []
        if not is_full:
            self._segments = 0
        self._reports += 1
        return {
            "number": self._reports,
            "until_ns": until_ns - self._clock_ahead_ns,
            "requests": [] if is_full else told,
            "is_full": is_full,
        }

    def _stamp(self, time_ns: int | None) -> int | None:
        return None if time_ns is None else time_ns - self._clock_ahead_ns


def _same(before: _Path, now: _Path) -> int:
    """How many segments both begin with."""
    count = 0
    for one, other in zip(zip(*before, strict=True), zip(*now, strict=True), strict=False):
        if one != other:
            break
        count += 1
    return count
