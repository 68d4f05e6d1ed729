"""The measured requests of one target of a run, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.query.views import connect
from harness.record.damage import naming_damage
from harness.record.reader import RecordedRun
from harness.statistics.bootstrap import Floats, Ints

Bools = npt.NDArray[np.bool_]

STRETCHES = 30
"""Parts of a run's measured time. More of them tell of shorter moments, fewer of what holds a server up for longer."""

_ROWS = """
    SELECT session, turn, status = 'ok' AS ok, coalesce(warmth = 'cold', false) AS cold,
           request_id IN (SELECT request_id FROM counted) AS counted,
           coalesce(ttft_ms, 'nan'::DOUBLE) AS ttft_ms, coalesce(tpot_ms, 'nan'::DOUBLE) AS tpot_ms,
           coalesce(e2e_ms, 'nan'::DOUBLE) AS e2e_ms, coalesce(cached_tokens, 'nan'::DOUBLE) AS cached_tokens,
           coalesce(prompt_tokens, 'nan'::DOUBLE) AS prompt_tokens, t_due
    FROM requests
    WHERE target = $target AND phase = 'measure' AND session IS NOT NULL AND status <> 'cancelled'
    ORDER BY session, turn, t_due
"""
_STARTED_BY = """
    SELECT DISTINCT child.session, parent.session
    FROM requests AS child JOIN requests AS parent ON child.parent_request = parent.request_id
    WHERE child.target = $target AND parent.session IS NOT NULL AND child.session <> parent.session
"""


@dataclass(frozen=True, slots=True)
class Rows:
    """One element a request, failed ones included; cancelled ones are not, as the end of the run is no result.

    nan: not reported, or not known.
    """

    session: Ints
    root: Ints
    """The session that a user played: of a sub-agent the one that it was started for. What is drawn."""
    turn: Ints
    ok: Bools
    counted: Bools
    """Its times count: the harness was not the bottleneck meanwhile."""
    cold: Bools
    ttft_ms: Floats
    tpot_ms: Floats
    e2e_ms: Floats
    cached_tokens: Floats
    prompt_tokens: Floats
    stretch: Ints
    """Number of the stretch of time in which it was due: the measured time of each run is cut into `STRETCHES`."""
    stretches: int
    """How many there are."""

    def __len__(self) -> int:
        return len(self.session)

    @property
    def reporting(self) -> Bools:
        """Those that report both cached and prompt tokens."""
        return ~np.isnan(self.cached_tokens) & ~np.isnan(self.prompt_tokens)

    @property
    def hit(self) -> Bools:
        """At least half of the prompt came from the cache."""
        return 2 * self.cached_tokens >= self.prompt_tokens

    @property
    def miss(self) -> Bools:
        return 2 * self.cached_tokens < self.prompt_tokens

    def take(self, which: Ints | Bools) -> Rows:
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})


_COLUMNS = tuple(field.name for field in fields(Rows) if field.name != "stretches")


def read_rows(run: RecordedRun, target: str, *, all_requests: bool = False) -> Rows:
    """Sorted by session and turn. `all_requests`: the times of those count that a report leaves out, too."""
    with naming_damage([run]), connect([run]) as connection:
        columns: dict[str, npt.NDArray[Any]] = dict(connection.execute(_ROWS, {"target": target}).fetchnumpy())  # type: ignore[arg-type]
        started_by = dict(connection.execute(_STARTED_BY, {"target": target}).fetchall())
    session = columns.pop("session").astype(np.int64)
    turn = columns.pop("turn").astype(np.int64)
    if all_requests:
        columns["counted"] = np.ones(len(session), dtype=bool)
    stretch = stretches_of(columns.pop("t_due").astype(np.int64))
    roots = _roots(session, started_by)
    return Rows(session=session, root=roots, turn=turn, stretch=stretch, stretches=STRETCHES, **columns)


def stretches_of(due_ns: Ints) -> Ints:
    """Which of `STRETCHES` equal parts of the time from the first to the last each falls into."""
    if not len(due_ns):
        return due_ns
    start_ns = int(due_ns.min())
    stretch: Ints = (due_ns - start_ns) * STRETCHES // (int(due_ns.max()) - start_ns + 1)
    return stretch


def _roots(sessions: Ints, started_by: dict[int, int]) -> Ints:
    if not started_by:
        return sessions
    names, places = np.unique(sessions, return_inverse=True)
    return np.array([_root(int(name), started_by) for name in names], dtype=np.int64)[places]


def _root(session: int, started_by: dict[int, int]) -> int:
    while session in started_by:
        session = started_by[session]
    return session


def pooled(parts: list[Rows]) -> Rows:
    """Of several runs; a session that each of them played is one that is drawn as a whole, and no time is the same."""
    before = [sum(part.stretches for part in parts[:number]) for number in range(len(parts))]
    parts = [replace(part, stretch=part.stretch + start) for part, start in zip(parts, before, strict=True)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
    return Rows(**columns, stretches=sum(part.stretches for part in parts))


def in_all(tables: list[Rows]) -> list[Rows]:
    """Of each table the requests (session and turn) that all of them have."""
    keys = keys_of(tables)
    common = keys[0]
    for other in keys[1:]:
        common = np.intersect1d(common, other)
    return [table.take(np.isin(key, common)) for table, key in zip(tables, keys, strict=True)]


def keys_of(tables: Sequence[Rows]) -> list[Ints]:
    """A number for each request of each table: the same for the same session and turn."""
    names = np.unique(np.concatenate([table.session for table in tables]))
    turns = max((int(table.turn.max()) for table in tables if len(table)), default=0) + 1
    return [np.searchsorted(names, table.session) * turns + table.turn for table in tables]


def same_request(reference: Rows, other: Rows, column: str) -> tuple[Floats, Ints]:
    """(time in `other` / time in `reference` of each request that both have, its place in `other`).

    A request that several runs of a side sent has their geometric mean.
    """
    (ours, logs, _), (theirs, their_logs, places) = (
        _log_times(table, key, column)
        for table, key in zip((reference, other), keys_of([reference, other]), strict=True)
    )
    _, here, there = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return np.exp(their_logs[there] - logs[here]), places[there]


def _log_times(table: Rows, keys: Ints, column: str) -> tuple[Ints, Floats, Ints]:
    """(keys, mean logarithm of the time, place of the first) of the requests that have one that counts."""
    times: Floats = getattr(table, column)
    which = np.flatnonzero(table.ok & table.counted & (times > 0))
    found, first, group = np.unique(keys[which], return_index=True, return_inverse=True)
    sums = np.bincount(group, weights=np.log(times[which]), minlength=len(found))
    return found, sums / np.bincount(group, minlength=len(found)), which[first]
