"""Sides held against the first of them: who answered, what was sent, and by how much they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from harness.analysis.health import health_of, marked_seconds, times_of
from harness.analysis.numbers import count
from harness.analysis.rows import frame, rows_of
from harness.compare.effect import Effect
from harness.compare.gates import Gate, Judged, judge
from harness.compare.identity import Difference, check, differences
from harness.compare.measures import compare_rows
from harness.compare.rows import Rows, in_all, keys_of, pooled, read_rows
from harness.compare.sides import Member, Side, sides_of
from harness.compare.workload import match, sent
from harness.errors import InputError
from harness.record.damage import naming_damage


@dataclass(frozen=True, slots=True)
class Against:
    """One side against the reference."""

    side: str
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is shown."""

    sides: tuple[tuple[str, str], ...]
    """(name, label): A, B, ... and the runs that they are."""
    differences: tuple[Difference, ...]
    workload: str
    """The scenario's fingerprint, and what was found of the requests, in words."""
    is_paired: bool
    """The same requests were compared; else all, each side by itself."""
    requests: tuple[tuple[int, int], ...]
    """By side: requests that were compared, and those that were measured."""
    sessions: int
    """Of the reference, that were compared."""
    against: tuple[Against, ...]
    problems: tuple[str, ...]
    gates: tuple[Judged, ...]

    def to_json(self) -> str:
        """Null is "not known"; an infinite number is the text inf."""
        return json.dumps(_plain(asdict(self)), indent=2, allow_nan=False)


def compare(
    words: Sequence[str],
    results: str,
    *,
    allowed: Sequence[str] = (),
    gates: Sequence[Gate] = (),
    all_requests: bool = False,
    strict: bool = True,
) -> Comparison:
    """`words`: as `sides_of` takes them; `allowed`: of `harness.compare.identity.OVERRIDES`, what may differ; `strict`:
    as `open_run`.

    Raises InputError if the sides may not be compared or have nothing to compare, RecordError as `open_run`.
    """
    sides = sides_of(words, results, strict=strict)
    with naming_damage([member.run for side in sides for member in side.members]):
        return _held(sides, allowed, gates, all_requests)


def _held(sides: Sequence[Side], allowed: Sequence[str], gates: Sequence[Gate], all_requests: bool) -> Comparison:
    found = differences(sides)
    check(found, allowed)
    read = [
        [read_rows(member.run, member.target.name, all_requests=all_requests) for member in side.members]
        for side in sides
    ]
    for side, tables in zip(sides, read, strict=True):
        for member, table in zip(side.members, tables, strict=True):
            if not len(table):
                raise InputError(f"{member.label} has no measured request: there is nothing to compare.")
    is_same, workload = _workload(sides)
    if not is_same and "workload" not in allowed:
        raise InputError(
            f"These runs did not send the same: {workload}; to compare them all the same: --allow workload"
        )
    tables = _compared(read, is_same)
    against = tuple(
        Against(side.name, tuple(compare_rows(tables[0], table, is_paired=is_same)))
        for side, table in zip(sides[1:], tables[1:], strict=True)
    )
    return Comparison(
        sides=tuple((side.name, side.label) for side in sides),
        differences=tuple(found),
        workload=workload,
        is_paired=is_same,
        requests=tuple((len(table), sum(map(len, of_side))) for table, of_side in zip(tables, read, strict=True)),
        sessions=len(np.unique(tables[0].root)),
        against=against,
        problems=(*_problems(sides, all_requests), *_left_out(tables, read, is_same), *_repeats(sides, read)),
        gates=tuple(judge(gate, one.side, one.effects) for one in against for gate in gates),
    )


def _workload(sides: Sequence[Side]) -> tuple[bool, str]:
    """Whether all runs sent what the first one did, and what was found in words."""
    first, *others = [member for side in sides for member in side.members]
    reference = sent(first)
    words, is_same = [], True
    for other in others:
        theirs = sent(other)
        found = match(reference, theirs)
        is_same = is_same and found.is_same and found.requests > 0 and reference.fingerprint == theirs.fingerprint
        scenario = "" if reference.fingerprint == theirs.fingerprint else f"another scenario ({theirs.fingerprint}), "
        words.append(f"{other.label}: {scenario}{found.sentence()}")
    return is_same, f"scenario {reference.fingerprint} of {first.label}; {'; '.join(words)}"


def _compared(read: Sequence[list[Rows]], is_same: bool) -> list[Rows]:
    """A table for each side: of the requests that all runs measured, or of all if the sides did not send the same."""
    parts = [table for tables in read for table in tables]
    if is_same:
        parts = in_all(parts)
        if not len(parts[0]):
            raise InputError("No request was measured in all of these runs: let them run longer.")
        parts = _counting_in_all(parts)
    left = iter(parts)
    return [pooled([next(left) for _ in tables]) for tables in read]


def _counting_in_all(tables: list[Rows]) -> list[Rows]:
    """Of the same requests: a time counts where it counts in all tables, or percentiles were of different requests."""
    keys = keys_of(tables)
    without = np.concatenate([key[~table.counted] for table, key in zip(tables, keys, strict=True)])
    return [
        replace(table, counted=~np.isin(key, without)) if len(without) else table
        for table, key in zip(tables, keys, strict=True)
    ]


def _problems(sides: Sequence[Side], all_requests: bool) -> Iterator[str]:
    """What makes a run doubtful, as its own report says it."""
    for side in sides:
        for member in side.members:
            for problem in _doubts(member, all_requests):
                yield f"{side.name}, {member.label}: {problem}"


def _doubts(member: Member, all_requests: bool) -> Iterator[str]:
    yield from (*member.run.problems, *member.run.manifest.problems)
    seconds = frame(member.run.harness_health())
    if not (marked := marked_seconds(seconds)):
        return
    rows = rows_of(member.run, "requests").of(member.target.name)
    is_measured = (rows.read("phase")["phase"] == "measure").to_numpy(dtype=bool)
    health = health_of(times_of(rows, marked, is_measured), is_measured, seconds, all_requests)
    if health.requests and (warning := health.warning()):
        yield f"{warning}."


def _left_out(tables: Sequence[Rows], read: Sequence[list[Rows]], is_same: bool) -> Iterator[str]:
    """Where a side has less than its own bottleneck takes from it."""
    lost = [int((~table.counted).sum()) for table in tables]
    own = [sum(int((~part.counted).sum()) for part in parts) for parts in read]
    if is_same and any(of_all > of_side for of_all, of_side in zip(lost, own, strict=True)):
        yield (
            f"Times are of the requests that count on every side: {count(lost[0])} of {count(len(tables[0]))} are left "
            "out of them, as the harness was the bottleneck meanwhile on one side at least."
        )


def _repeats(sides: Sequence[Side], read: Sequence[list[Rows]]) -> Iterator[str]:
    """A sentence for each run of a side that differs from the side's first: sessions do not tell how runs vary."""
    for side, tables in zip(sides, read, strict=True):
        for member, table in zip(side.members[1:], tables[1:], strict=True):
            both = in_all([tables[0], table])
            if not len(both[0]):
                continue
            told = [one for one in compare_rows(*both, is_paired=True) if one.verdict in ("higher", "lower")]
            if told:
                named = ", ".join(f"{one.name} {one.effect:.3f}" for one in told)
                yield (
                    f"{side.name}: {member.label} differs from {side.members[0].label}, which it repeats ({named}): a "
                    "difference between sides that is no larger may be one between runs."
                )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value
