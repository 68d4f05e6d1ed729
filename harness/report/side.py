"""What stands side by side in a report: the targets of all runs, with their numbers and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.analysis.pages import replicas
from harness.analysis.run import MODELLED, Run, TargetRun, load
from harness.analysis.summary import Summary, summary_and_log
from harness.analysis.tables import Sides
from harness.errors import InputError
from harness.record.reader import RecordedRun
from harness.report.distances import Reuse, reuse
from harness.report.measured import Measured, measured
from harness.report.source import DRAWN

MOST_SIDES = 12
"""Of more targets nobody could find anything on one page."""
LEAST_POINTS = 200
"""Of the plot of TTFT; all such plots of a page together have no more points than one alone would have."""

_Found = tuple[Run, TargetRun, Summary, Measured, Reuse | None]


@dataclass(frozen=True, slots=True)
class Side:
    """One target of one run."""

    name: str
    """For headings; empty: there is no other side."""
    run: Run
    of_target: TargetRun
    summary: Summary
    measured: Measured
    reuse: Reuse | None
    """None: no measured request tells what it hit."""

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
    points = max(LEAST_POINTS, DRAWN // max(1, targets))
    runs: list[Run] = []
    found: list[_Found] = []
    for one in recorded:
        run = load(one, all_requests=all_requests, modelled=modelled)
        runs.append(run)
        for of_target in run.by_target():
            found.append((run, of_target, *_found(of_target, points)))
    word = "run" if all(len(run.manifest.targets) == 1 for run in runs) else "target"
    tables = Sides([summary for _, _, summary, *_ in found], word)
    sides = (Side(_name(number, one, word, len(found)), *one) for number, one in enumerate(found, start=1))
    return Reported(tuple(sides), tables, tuple(runs))


def _found(run: TargetRun, points: int) -> tuple[Summary, Measured, Reuse | None]:
    pages = replicas(run.samples, run.target)
    run.is_counted  # noqa: B018  both need it
    with ThreadPoolExecutor(max_workers=1) as beside:
        of_requests = beside.submit(measured, run, pages, points)
        summary, log = summary_and_log(run, pages)
        reused = reuse(log, run.target.identity.get("granularity_tokens") or 1)
        found = summary, of_requests.result(), reused
    run.rows.forget()
    return found


def _name(number: int, found: _Found, word: str, sides: int) -> str:
    if sides == 1:
        return ""
    run, _, summary, *_ = found
    engine = str(summary.identity.get("engine", "unknown engine"))
    whole_run = sides == len(run.manifest.targets)
    names = [run.manifest.run_id] if word == "run" else [engine] if whole_run else [engine, run.manifest.run_id]
    return f"{word} {number}: {', '.join(names)}"
