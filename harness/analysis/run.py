"""A recorded run as pandas tables, whole or target by target."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from harness.analysis.health import disturbed, marked_seconds
from harness.record.manifest import Manifest, Phase, TargetRecord
from harness.record.reader import RecordedRun, open_run
from harness.record.schema import HARNESS_HEALTH

LOAD = ("ramp", "measure")
"""Phases of the requests that users sent; results come from the second alone."""
_PANDAS_TYPES = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
"""Nullable types: plain pandas would turn a column of stamps with one null into floats, and lose nanoseconds."""


@dataclass(frozen=True, slots=True)
class TargetRun:
    """What a run recorded of one of its targets."""

    requests: pd.DataFrame
    """As in `Run`, of this target alone."""
    server_metrics: pd.DataFrame
    target: TargetRecord
    phases: tuple[Phase, ...]
    """Those that were spent on it, maybe together with others."""
    number: int
    """The target's number within the run."""
    scenario: Mapping[str, Any]
    """The scenario, as run.json has it."""
    harness_health: pd.DataFrame = field(default_factory=lambda: _frame(HARNESS_HEALTH.empty_table()))
    """As in `Run`, of the whole run."""
    left_out: pd.Index = field(default_factory=lambda: pd.Index([]))
    """As in `Run`."""
    all_requests: bool = False
    """Nothing was to be left out."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of the run, as run.json has them."""

    @property
    def measured(self) -> pd.DataFrame:
        """The requests of the measured phase."""
        return _measured(self.requests)

    @property
    def counted(self) -> pd.DataFrame:
        """Those of them whose times count: all but `left_out`."""
        return _counted(self.measured, self.left_out)


@dataclass(frozen=True, slots=True)
class Run:
    """One run, ready for analysis."""

    requests: pd.DataFrame
    """One row per request; columns as `harness.record.schema.REQUESTS`."""
    server_metrics: pd.DataFrame
    """One row per sample; columns as `harness.record.schema.SERVER_METRICS`, labels as lists of (name, value)."""
    manifest: Manifest
    problems: tuple[str, ...]
    """Why the results may not mean what they seem to: the record's own problems, then those in run.json."""
    harness_health: pd.DataFrame
    """One row per second and process; columns as `harness.record.schema.HARNESS_HEALTH`."""
    left_out: pd.Index
    """Labels of rows of `requests` whose times do not count, as the harness was the bottleneck meanwhile."""
    all_requests: bool
    """Nothing was to be left out."""

    @property
    def measured(self) -> pd.DataFrame:
        """The requests of the measured phase, of all targets."""
        return _measured(self.requests)

    @property
    def counted(self) -> pd.DataFrame:
        """Those of them whose times count: all but `left_out`."""
        return _counted(self.measured, self.left_out)

    def by_target(self) -> list[TargetRun]:
        """The run target by target, in the order of run.json."""
        return [
            TargetRun(
                requests=self.requests[self.requests["target"] == target.name],
                server_metrics=self.server_metrics[self.server_metrics["target"] == target.name],
                target=target,
                phases=tuple(phase for phase in self.manifest.phases if target.name in phase.targets),
                number=number,
                scenario=self.manifest.scenario,
                harness_health=self.harness_health,
                left_out=self.left_out,
                all_requests=self.all_requests,
                options=self.manifest.options,
            )
            for number, target in enumerate(self.manifest.targets)
        ]

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
) -> Run:
    """Load a run by its directory, its id below `base`, as "latest", or as `open_run` returned it.

    `all_requests`: the times of those that were under way while the harness was the bottleneck count, too.
    Counts and stamps are nullable integers (null is pd.NA); durations are floats (null is NaN). Raises as `open_run`.
    """
    recorded = run if isinstance(run, RecordedRun) else open_run(run, base, strict=strict)
    requests, server_metrics = _frame(recorded.requests()), _frame(recorded.server_metrics())
    health = _frame(recorded.harness_health())
    names = {target.name for target in recorded.manifest.targets}
    strays = [*_strays("requests", requests, names), *_strays("server_metrics", server_metrics, names)]
    return Run(
        requests=requests,
        server_metrics=server_metrics,
        manifest=recorded.manifest,
        problems=(*recorded.problems, *strays, *recorded.manifest.problems),
        harness_health=health,
        left_out=requests.index[:0] if all_requests else disturbed(requests, marked_seconds(health)),
        all_requests=all_requests,
    )


def _strays(table: str, rows: pd.DataFrame, names: set[str]) -> Iterator[str]:
    """A sentence for each target that only the rows know."""
    counts = rows.loc[~rows["target"].isin(names), "target"].value_counts().sort_index()
    for target, n in counts.items():
        yield f"{n} rows of {table} are of a target {target!r} that run.json does not list; no table shows them."


def _measured(requests: pd.DataFrame) -> pd.DataFrame:
    return requests[requests["phase"] == "measure"]


def _counted(measured: pd.DataFrame, left_out: pd.Index) -> pd.DataFrame:
    return measured[~measured.index.isin(left_out)]


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper=_PANDAS_TYPES.get)
    return frame
