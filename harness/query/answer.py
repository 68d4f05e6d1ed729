"""A question in SQL, and its answer batch by batch; what DuckDB has against it in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duckdb
import pyarrow as pa

from harness.errors import InputError

BATCH_ROWS = 16_384
_PLACE = re.compile(r"\n+LINE \d+:.*", re.DOTALL)
"""The line of the query that a complaint is about, with a mark below it."""


class Answer:
    """The rows of one SELECT, read as they are asked for."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str) -> None:
        """Raises InputError if `sql` is not one query that only reads, or DuckDB cannot run it."""
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type is not duckdb.StatementType.SELECT:
                raise InputError(
                    "A query is one statement that only reads (SELECT, WITH, FROM, DESCRIBE or SUMMARIZE), and this is "
                    f"{_what(statements)}."
                )
            self._batches = connection.sql(sql).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error as error:
            raise InputError(_sentence(error)) from error
        self.schema = pa.schema([field.with_type(_plain_type(field.type)) for field in self._batches.schema])
        """Sums of whole numbers are int64, other decimals float64, and enumerations text."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As `schema` says. Raises InputError if a row cannot be calculated."""
        try:
            for batch in self._batches:
                columns = [column.cast(field.type) for column, field in zip(batch.columns, self.schema, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        except (duckdb.Error, pa.ArrowInvalid, OSError) as error:
            raise InputError(_sentence(error)) from error


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.int64() if kind.scale == 0 else pa.float64()
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _what(statements: list[duckdb.Statement]) -> str:
    if not statements:
        return "none"
    return f"{len(statements)} statements" if len(statements) > 1 else f"a statement of type {statements[0].type.name}"


def _sentence(error: Exception) -> str:
    """DuckDB's own words in one line."""
    words = " ".join(_PLACE.sub("", str(error)).split())
    return f"The query cannot be answered: {words}{'' if words.endswith(('.', '?', '!')) else '.'}"
