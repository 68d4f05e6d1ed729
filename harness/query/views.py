"""Recorded runs as the views of a DuckDB connection that can read nothing else, and write nothing."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from harness.query.derived import COUNTED, SESSIONS
from harness.query.manifest_tables import manifest_tables
from harness.record.reader import RecordedRun, each_once
from harness.record.schema import TABLES

_ROWS = "recorded"
"""Schema of what the views are made of; `SHOW TABLES` does not list it."""
_LOCKS = (
    "SET temp_directory = ''",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def connect(runs: Sequence[RecordedRun]) -> duckdb.DuckDBPyConnection:
    """A connection with the views requests, counted, sessions, server_metrics, harness_health, and the tables runs,
    targets, phases and metric_names, of all `runs` together.

    SQL can reach the parts of these runs and no other file. Raises InputError if a run stands there twice: its rows
    would count twice.
    """
    each_once(runs)
    connection = duckdb.connect()
    connection.execute(f"CREATE SCHEMA {_ROWS}")
    reachable = [path for name in TABLES for path in _add_rows(connection, name, runs)]
    for name, table in manifest_tables(runs).items():
        _add_table(connection, name, table)
    for name, sql in (("counted", COUNTED), ("sessions", SESSIONS)):
        connection.execute(f"CREATE VIEW {name} AS {sql}")
    connection.execute(f"SET allowed_paths = {_literal(reachable)}")
    for lock in _LOCKS:
        connection.execute(lock)
    return connection


def _add_rows(connection: duckdb.DuckDBPyConnection, name: str, runs: Sequence[RecordedRun]) -> list[str]:
    """Make the view `name` of all parts of that table; the local files that it reads.

    A part of another version may lack a column, which is null then, or have one more.
    """
    _add_table(connection, f"{_ROWS}.{name}", TABLES[name].empty_table())
    sources, reachable = [f"FROM {_ROWS}.{name}"], []
    for number, run in enumerate(runs):
        paths = [f"{run.folder.path}/{part}" for part in run.parts[name]]
        if not paths:
            continue
        if isinstance(run.folder.filesystem, fs.LocalFileSystem):
            reachable += paths
        else:
            stored = f"{name}_{number}"
            connection.register(stored, _dataset(paths, run.folder.filesystem))
            sources.append(f"FROM {stored}")
    if reachable:
        sources.append(f"FROM read_parquet({_literal(reachable)}, union_by_name = true)")
    connection.execute(f"CREATE VIEW {name} AS {' UNION ALL BY NAME '.join(sources)}")
    return reachable


def _dataset(paths: Sequence[str], filesystem: fs.FileSystem) -> ds.Dataset:
    """Parts in a store that pyarrow reads, such as S3."""
    schemas = [pq.read_schema(path, filesystem=filesystem) for path in paths]
    schema = pa.unify_schemas(schemas, promote_options="permissive")
    return ds.dataset(paths, schema=schema, filesystem=filesystem, format="parquet")


def _add_table(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    connection.register("given", table)
    connection.execute(f"CREATE TABLE {name} AS FROM given")
    connection.unregister("given")


def _literal(texts: Sequence[str]) -> str:
    """As a list of SQL."""
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"
