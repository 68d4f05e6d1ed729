"""A recorded run as pandas tables."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa

from harness.record.manifest import Manifest
from harness.record.reader import RecordedRun, open_run

_PANDAS_TYPES = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
"""Nullable types: plain pandas would turn a column of stamps with one null into floats, and lose nanoseconds."""


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

    @property
    def measured(self) -> pd.DataFrame:
        """The requests of the measured phase."""
        return self.requests[self.requests["phase"] == "measure"]


def load(
    run: str | os.PathLike[str] | RecordedRun, base: str | os.PathLike[str] = "results", *, strict: bool = True
) -> Run:
    """Load a run by its directory, its id below `base`, as "latest", or as `open_run` returned it.

    Counts and stamps are nullable integers (null is pd.NA); durations are floats (null is NaN). Raises as `open_run`.
    """
    recorded = run if isinstance(run, RecordedRun) else open_run(run, base, strict=strict)
    return Run(
        requests=_frame(recorded.requests()),
        server_metrics=_frame(recorded.server_metrics()),
        manifest=recorded.manifest,
        problems=(*recorded.problems, *recorded.manifest.problems),
    )


def _frame(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas(types_mapper=_PANDAS_TYPES.get)
    return frame
