"""What stands side by side in a report: the targets of all runs, with their numbers and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.analysis.request_log import RequestLog, read_log
from harness.analysis.run import MODELLED, Run, TargetRun, load
from harness.analysis.summary import Summary, summarise
from harness.analysis.tables import Sides
from harness.errors import InputError
from harness.record.reader import RecordedRun
from harness.report.source import Source

MOST_SIDES = 12
"""Of more targets nobody could find anything on one page."""

_Found = tuple[Run, TargetRun, RequestLog, Summary, Source]


@dataclass(frozen=True, slots=True)
class Side:
    """One target of one run."""

    name: str
    """For headings; empty: there is no other side."""
    run: Run
    of_target: TargetRun
    log: RequestLog
    summary: Summary
    source: Source

    @property
    def prefix(self) -> str:
        """To begin a sentence with."""
        return f"{self.name}: " if self.name else ""


@dataclass(frozen=True, slots=True)
class Reported:
    """All that a report is made of."""

    sides: tuple[Side, ...]
    tables: Sides
    """The same, as the tables of `harness.analysis` take them."""
    runs: tuple[Run, ...]


def read(recorded: Sequence[RecordedRun], all_requests: bool = False, modelled: int | None = MODELLED) -> Reported:
    """`all_requests`, `modelled`: as in `harness.analysis.run.load`.

    Raises InputError if there are more targets than `MOST_SIDES`.
    """
    targets = sum(len(one.manifest.targets) for one in recorded)
    if targets > MOST_SIDES:
        raise InputError(f"{targets} targets are too many for one page: name runs with {MOST_SIDES} of them at most.")
    runs: list[Run] = []
    found: list[_Found] = []
    for one in recorded:
        run = load(one, all_requests=all_requests, modelled=modelled)
        runs.append(run)
        for of_target in run.by_target():
            log = read_log(of_target)
            summary = summarise(of_target, log)
            of_target.rows.forget()  # what is drawn has its own columns, and both take too much memory
            found.append((run, of_target, log, summary, Source(one, of_target.target.name, all_requests)))
    word = "run" if all(len(run.manifest.targets) == 1 for run in runs) else "target"
    tables = Sides([summary for *_, summary, _ in found], word)
    sides = (Side(_name(number, one, word, len(found)), *one) for number, one in enumerate(found, start=1))
    return Reported(tuple(sides), tables, tuple(runs))


def _name(number: int, found: _Found, word: str, sides: int) -> str:
    if sides == 1:
        return ""
    run, *_, summary, _ = found
    engine = str(summary.identity.get("engine", "unknown engine"))
    whole_run = sides == len(run.manifest.targets)
    names = [run.manifest.run_id] if word == "run" else [engine] if whole_run else [engine, run.manifest.run_id]
    return f"{word} {number}: {', '.join(names)}"
