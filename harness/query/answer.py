"""A question in SQL, and its answer batch by batch; what DuckDB has against it in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

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
        names = _apart(self._batches.schema.names)
        fields = zip(self._batches.schema, names, strict=True)
        self.schema = pa.schema([field.with_type(_plain_type(field.type)).with_name(name) for field, name in fields])
        """Sums of whole numbers are int64, other decimals float64, and enumerations text. No two columns have one name:
        the second `kind` is `kind_1`, as DuckDB has it in a query within a query."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """As `schema` says. Raises InputError if a row cannot be calculated."""
        try:
            for batch in self._batches:
                columns = [column.cast(field.type) for column, field in zip(batch.columns, self.schema, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
        except (duckdb.Error, pa.ArrowInvalid, OSError) as error:
            raise InputError(_sentence(error)) from error


def _apart(names: Sequence[str]) -> list[str]:
    """Each name once."""
    found: list[str] = []
    for name in names:
        others = (f"{name}_{number}" for number in count(1))
        found.append(
            name if name not in found else next(one for one in others if one not in found and one not in names)
        )
    return found


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
