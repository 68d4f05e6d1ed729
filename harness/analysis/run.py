"""A recorded run for analysis, whole or target by target: its rows are read when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from harness.analysis.health import Marked, Times, disturbed, marked_seconds, times_of
from harness.analysis.rows import Rows, frame, rows_of
from harness.errors import InputError
from harness.record.manifest import Manifest, Phase, TargetRecord
from harness.record.reader import RecordedRun, open_run
from harness.record.schema import HARNESS_HEALTH

LOAD = ("ramp", "measure")
"""Phases of the requests that users sent; results come from the second alone."""
MODELLED = 20_000
"""Of a target's requests the cache models are given so many, the first that were sent, if nothing else is asked for."""


@dataclass(frozen=True)
class TargetRun:
    """What a run recorded of one of its targets.

    `rows` and `samples` read columns; `requests`, `server_metrics`, `measured` and `counted` are whole tables, which
    take some 2 kB of memory a request.
    """

    rows: Rows
    """One a request."""
    samples: Rows
    """One a sample of the server's metrics."""
    target: TargetRecord
    phases: tuple[Phase, ...]
    """Those that were spent on it, maybe together with others."""
    number: int
    """The target's number within the run."""
    scenario: Mapping[str, Any]
    """The scenario, as run.json has it."""
    harness_health: pd.DataFrame = field(default_factory=lambda: frame(HARNESS_HEALTH.empty_table()))
    """As in `Run`, of the whole run."""
    all_requests: bool = False
    """Nothing was to be left out."""
    modelled: int | None = MODELLED
    """How many requests the cache models are given at most; None: all."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of the run, as run.json has them."""
    run: Run | None = None
    """The run that this is a part of; None: there are no other targets."""

    @cached_property
    def is_measured(self) -> npt.NDArray[np.bool_]:
        """Shape (rows,): those of the measured phase."""
        return (self.rows.read("phase")["phase"] == "measure").to_numpy(dtype=bool)

    @cached_property
    def is_counted(self) -> npt.NDArray[np.bool_]:
        """Shape (rows,): those of them whose times count."""
        return self.is_measured if self.all_requests else self.is_measured & ~self.times.disturbed

    @cached_property
    def times(self) -> Times:
        """When the requests were under way, and which of them while the harness was the bottleneck."""
        return times_of(self.rows, self.marked, self.is_measured)

    @cached_property
    def marked(self) -> tuple[Marked, ...]:
        """Seconds in which the harness was the bottleneck."""
        return tuple(marked_seconds(self.harness_health))

    @cached_property
    def requests(self) -> pd.DataFrame:
        """As in `Run`, of this target alone."""
        if self.run is None:
            return _whole(self.rows)
        return self.run.requests[self.run.requests["target"] == self.target.name]

    @cached_property
    def server_metrics(self) -> pd.DataFrame:
        """As in `Run`, of this target alone."""
        if self.run is None:
            return _whole(self.samples)
        return self.run.server_metrics[self.run.server_metrics["target"] == self.target.name]

    @property
    def measured(self) -> pd.DataFrame:
        """The requests of the measured phase."""
        return self.requests[self.is_measured]

    @property
    def counted(self) -> pd.DataFrame:
        """Those of them whose times count: without those under way while the harness was the bottleneck."""
        return self.requests[self.is_counted]


@dataclass(frozen=True)
class Run:
    """One run, ready for analysis. Whole tables are read when asked for."""

    recorded: RecordedRun
    problems: tuple[str, ...]
    """Why the results may not mean what they seem to: the record's own problems, then those in run.json."""
    harness_health: pd.DataFrame
    """One row per second and process; columns as `harness.record.schema.HARNESS_HEALTH`."""
    all_requests: bool
    """Nothing was to be left out."""
    modelled: int | None
    """How many requests of each target the cache models are given at most; None: all."""
    tables: Mapping[str, Rows]
    """requests and server_metrics, to read columns from."""
    targets_of: Mapping[str, frozenset[str]]
    """Table -> the targets of its rows."""

    @property
    def manifest(self) -> Manifest:
        """What run.json says."""
        return self.recorded.manifest

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row per request; columns as `harness.record.schema.REQUESTS`."""
        return frame(self.recorded.requests())

    @cached_property
    def server_metrics(self) -> pd.DataFrame:
        """One row per sample; columns as `harness.record.schema.SERVER_METRICS`, labels as lists of (name, value)."""
        return frame(self.recorded.server_metrics())

    @cached_property
    def left_out(self) -> pd.Index:
        """Labels of rows of `requests` whose times do not count, as the harness was the bottleneck meanwhile."""
        if self.all_requests:
            return self.requests.index[:0]
        return disturbed(self.requests, marked_seconds(self.harness_health))

    @property
    def measured(self) -> pd.DataFrame:
        """The requests of the measured phase, of all targets."""
        return self.requests[self.requests["phase"] == "measure"]

    @property
    def counted(self) -> pd.DataFrame:
        """Those of them whose times count: all but `left_out`."""
        return self.measured[~self.measured.index.isin(self.left_out)]

    def by_target(self) -> list[TargetRun]:
        """The run target by target, in the order of run.json."""
        return [
            TargetRun(
                rows=self._rows("requests", target.name),
                samples=self._rows("server_metrics", target.name),
                target=target,
                phases=tuple(phase for phase in self.manifest.phases if target.name in phase.targets),
                number=number,
                scenario=self.manifest.scenario,
                harness_health=self.harness_health,
                all_requests=self.all_requests,
                modelled=self.modelled,
                options=self.manifest.options,
                run=self,
            )
            for number, target in enumerate(self.manifest.targets)
        ]

    def _rows(self, table: str, target: str) -> Rows:
        # What holds of every row is not asked of each.
        rows = self.tables[table]
        return Rows(rows.dataset) if self.targets_of[table] == {target} else rows.of(target)

    def only_target(self) -> TargetRun:
        """The target of a run that has no other. Raises ValueError if it has."""
        (of_target,) = self.by_target()
        return of_target


def load(
    run: str | os.PathLike[str] | RecordedRun,
    base: str | os.PathLike[str] = "results",
    *,
    strict: bool = True,
    all_requests: bool = False,
    modelled: int | None = MODELLED,
) -> Run:
    """Load a run by its directory, its id below `base`, as "latest", or as `open_run` returned it.

    `all_requests`: the times of those that were under way while the harness was the bottleneck count, too. `modelled`:
    how many requests of each target, in order of sending, the cache models are given at most; None: all.
    Counts and stamps are nullable integers (null is pd.NA); durations are floats (null is NaN). Raises as `open_run`.
    """
    recorded = run if isinstance(run, RecordedRun) else open_run(run, base, strict=strict)
    tables = {table: rows_of(recorded, table) for table in ("requests", "server_metrics")}
    names = {target.name for target in recorded.manifest.targets}
    counts = {table: _by_target(rows, names) for table, rows in tables.items()}
    strays = [sentence for table, of_table in counts.items() for sentence in _strays(table, of_table, names)]
    return Run(
        recorded=recorded,
        problems=(*recorded.problems, *strays, *recorded.manifest.problems),
        harness_health=frame(recorded.harness_health()),
        all_requests=all_requests,
        modelled=modelled,
        tables=tables,
        targets_of={table: frozenset(of_table) for table, of_table in counts.items()},
    )


def parse_modelled(text: str | None) -> int | None:
    """A number of requests, or all; None: `MODELLED`. Raises InputError."""
    if text is None:
        return MODELLED
    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        raise InputError(f"--modelled {text}: give a number of requests from 1 on, or all.")
    return int(text)


def _by_target(rows: Rows, names: set[str]) -> dict[str, int]:
    """Target -> number of its rows, in alphabetical order; `names`: those that there should be."""
    counts = {name: rows.count(pc.field("target") == name) for name in sorted(names)}
    if sum(counts.values()) < rows.count():
        found = rows.read("target")["target"].value_counts().sort_index()
        counts = {str(target): int(n) for target, n in found.items()}
    return {target: n for target, n in counts.items() if n}


def _strays(table: str, counts: Mapping[str, int], names: set[str]) -> Iterator[str]:
    """A sentence for each target that only the rows know."""
    for target, n in counts.items():
        if target not in names:
            yield f"{n} rows of {table} are of a target {target!r} that run.json does not list; no table shows them."


def _whole(rows: Rows) -> pd.DataFrame:
    return frame(rows.dataset.to_table())
