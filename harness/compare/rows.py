"""The measured requests of one target of a run: who they are, and their times as columns that are read when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from harness.analysis.health import times_of
from harness.analysis.rows import Rows as Recorded
from harness.analysis.rows import rows_of
from harness.analysis.run import TargetRun, load
from harness.record.reader import RecordedRun
from harness.statistics.bootstrap import Floats, Ints, Numbers
from harness.statistics.moments import STRETCHES, stretches_of

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rows:
    """One element a request, failed ones included; cancelled ones are not, as the end of the run is no result."""

    session: Numbers
    root: Numbers
    """The session that a user played: of a sub-agent the one that it was started for. What is drawn."""
    turn: Numbers
    ok: Bools
    counted: Bools
    """Its times count: the harness was not the bottleneck meanwhile."""
    cold: Bools
    hit: Bools
    """At least half of the prompt came from the cache."""
    miss: Bools
    """Less did. Neither: it does not report both cached and prompt tokens."""
    stretch: Numbers
    """Number of the stretch of time in which it was due: the measured time of each run is cut into `STRETCHES`."""
    stretches: int
    """How many there are."""
    column: Callable[[str], Floats]
    """Reads ttft_ms, tpot_ms, e2e_ms, cached_tokens or prompt_tokens, (requests,); nan: not reported, or not known."""

    def __len__(self) -> int:
        return len(self.session)

    @property
    def reporting(self) -> Bools:
        """Those that report both cached and prompt tokens."""
        return self.hit | self.miss

    def take(self, which: Ints | Bools) -> Rows:
        column = partial(_taken, self.column, which)
        return replace(self, column=column, **{name: getattr(self, name)[which] for name in _ARRAYS})


_ARRAYS = tuple(field.name for field in fields(Rows) if field.name not in ("stretches", "column"))


def _taken(column: Callable[[str], Floats], which: Ints | Bools, name: str) -> Floats:
    return column(name)[which]


def _concatenated(columns: Sequence[Callable[[str], Floats]], name: str) -> Floats:
    return np.concatenate([column(name) for column in columns])


def read_rows(run: RecordedRun, target: str, *, all_requests: bool = False) -> Rows:
    """`all_requests`: the times of those count that a report leaves out, too."""
    loaded = load(run, all_requests=all_requests)
    (of_target,) = (one for one in loaded.by_target() if one.target.name == target)
    found = _arrays(of_target)
    if len(found["session"]) and found["session"].max() < 2**31:
        found["session"] = found["session"].astype(np.int32)
    which, stretch = found.pop("which"), stretches_of(found.pop("t_due"))
    roots = _roots(found["session"], _started_by(of_target.rows))
    column = partial(_column, run, target, which)
    return Rows(root=roots, stretch=stretch, stretches=STRETCHES, column=column, **found)


def _arrays(run: TargetRun) -> dict[str, npt.NDArray[Any]]:
    """`which`, (rows of the target,), holds for the requests that the others are of."""
    which = np.concatenate([(piece["phase"] == "measure").to_numpy(dtype=bool) for piece in run.rows.pieces("phase")])
    counted = which.copy() if run.all_requests else which & ~times_of(run.rows, run.marked, which).disturbed
    kinds: dict[str, Any] = {"session": np.int64, "turn": np.int32, "t_due": np.int64}
    kinds |= dict.fromkeys(("ok", "counted", "cold", "hit", "miss"), np.bool_)
    # Whole at once and then filled: many small arrays would leave holes in memory.
    found = {name: np.empty(int(which.sum()), kind) for name, kind in kinds.items()}
    row = end = 0
    for piece in run.rows.pieces("session", "turn", "status", "warmth", "t_due", "cached_tokens", "prompt_tokens"):
        place = slice(row, row + len(piece))
        row += len(piece)
        named = piece["session"].notna() & (piece["status"] != "cancelled")
        which[place] &= named.to_numpy(dtype=bool)
        own = piece[which[place]]
        cached, prompt = (_floats(own[name]) for name in ("cached_tokens", "prompt_tokens"))
        here = slice(end, end + len(own))
        end += len(own)
        for name in ("session", "turn", "t_due"):
            found[name][here] = own[name].to_numpy(dtype=kinds[name])
        found["ok"][here] = own["status"] == "ok"
        found["counted"][here] = counted[place][which[place]]
        found["cold"][here] = own["warmth"] == "cold"
        found["hit"][here] = 2 * cached >= prompt
        found["miss"][here] = 2 * cached < prompt
    return {"which": which} | {name: array[:end] for name, array in found.items()}


def _column(run: RecordedRun, target: str, which: Bools, name: str) -> Floats:
    """The parts are opened anew, as what is known of thousands of them takes more memory than a column."""
    found = np.empty(int(which.sum()))
    row = end = 0
    for piece in rows_of(run, "requests").of(target).pieces(name):
        own = _floats(piece[name])[which[row : row + len(piece)]]
        found[end : end + len(own)] = own
        row += len(piece)
        end += len(own)
    return found


def _floats(column: Any) -> Floats:
    values: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _started_by(rows: Recorded) -> dict[int, int]:
    """Session of a sub-agent -> the session whose request started it."""
    in_session = pc.field("session").is_valid()
    children = rows.some(pc.field("parent_request").is_valid() & in_session, "session", "parent_request")
    children = children.drop_duplicates()
    if children.empty:
        return {}
    is_parent = pc.field("request_id").isin(children["parent_request"].tolist())
    parents = rows.some(is_parent & in_session, "request_id", "session")
    sessions = dict(zip(parents["request_id"], parents["session"], strict=True))
    pairs = zip(children["session"], children["parent_request"], strict=True)
    return {int(own): int(sessions[by]) for own, by in pairs if by in sessions and sessions[by] != own}


def _roots(sessions: Numbers, started_by: dict[int, int]) -> Numbers:
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
    if len(parts) == 1:
        return parts[0]
    before = [sum(part.stretches for part in parts[:number]) for number in range(len(parts))]
    parts = [replace(part, stretch=part.stretch + start) for part, start in zip(parts, before, strict=True)]
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
    column = partial(_concatenated, [part.column for part in parts])
    return Rows(**columns, stretches=sum(part.stretches for part in parts), column=column)


def in_all(tables: list[Rows]) -> list[Rows]:
    """Of each table the requests (session and turn) that all of them have."""
    keys = keys_of(tables)
    common = keys[0]
    for other in keys[1:]:
        common = common[np.isin(common, other)]
    chosen = [np.isin(key, common) for key in keys]
    return [table if which.all() else table.take(which) for table, which in zip(tables, chosen, strict=True)]


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
    times = table.column(column)
    which = np.flatnonzero(table.ok & table.counted & (times > 0))
    found, first, group = np.unique(keys[which], return_index=True, return_inverse=True)
    sums = np.bincount(group, weights=np.log(times[which]), minlength=len(found))
    return found, sums / np.bincount(group, minlength=len(found)), which[first]
