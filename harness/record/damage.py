"""Which part it is that cannot be read, which neither DuckDB nor pyarrow always says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from harness.errors import InputError
from harness.record.reader import RecordedRun

_ASKED_WRONGLY = (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError)
"""The query is to blame, and not what it reads."""


@contextmanager
def naming_damage(runs: Sequence[RecordedRun]) -> Iterator[None]:
    """Around whatever reads rows of `runs`: an error of reading becomes a RecordError that names the part.

    All other errors go on as they are.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, InputError) as error:
        cause = error.__cause__ if isinstance(error, InputError) else error
        if cause is not None and not isinstance(cause, _ASKED_WRONGLY):
            for run in runs:
                run.read_through()
        raise
