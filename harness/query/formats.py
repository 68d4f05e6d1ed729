"""The formats of an answer: a table on the screen, CSV, Parquet, Markdown or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

MOST_ROWS = 1_000
"""The screen shows so many; files have all."""
MOST_APART = 20
"""Of rows that are too wide for a table the screen shows so many, field by field."""
_READABLE = 16
"""A column may be folded to so many characters, and is still read."""


class Format(Protocol):
    """Takes an answer batch by batch."""

    def add(self, batch: pa.RecordBatch) -> None: ...

    def end(self) -> None: ...


class Screen:
    """A table of the first `MOST_ROWS` rows; numbers stand to the right, and what is null says so.

    If the columns would be too narrow to be read, a line for each field of the first `MOST_APART` rows.
    """

    def __init__(self, console: Console, schema: pa.Schema) -> None:
        self._console = console
        self._schema = schema
        self._shown: list[list[str]] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        for row in _rows(batch.slice(0, max(0, MOST_ROWS - self._rows))):
            self._shown.append([_cell(value) for value in row])
        self._rows += batch.num_rows

    def end(self) -> None:
        most = MOST_ROWS if self._fits() else MOST_APART
        if most == MOST_ROWS:
            self._console.print(self._table())
        else:
            for number, row in enumerate(self._shown[:most], start=1):
                self._console.print(Text(f"row {number}", style="bold"))
                self._console.print(self._apart(row))
        if self._rows > most:
            line = f"The first {most:,} of {self._rows:,} rows; --csv, --parquet, --markdown and --json have all."
            self._console.print(Text(line))

    def _fits(self) -> bool:
        columns = zip(self._schema.names, *self._shown, strict=True)
        return sum(min(max(map(len, texts)), _READABLE) + 1 for texts in columns) <= self._console.width

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for field in self._schema:
            # Text, not markup: names and values may hold square brackets.
            justify: JustifyMethod = "right" if _is_number(field.type) else "left"
            table.add_column(Text(field.name), justify=justify, overflow="fold")
        for row in self._shown:
            table.add_row(*map(Text, row))
        return table

    def _apart(self, row: Sequence[str]) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in zip(self._schema.names, row, strict=True):
            table.add_row(Text(f"  {name}"), Text(text))
        return table


class Csv:
    """A heading and a line for each row. Null is an empty field, an empty text is `""`; lists and maps are JSON."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._is_json = [not _fits_csv(field.type) for field in schema]
        kinds = zip(schema, self._is_json, strict=True)
        self._schema = pa.schema([field.with_type(pa.string()) if is_json else field for field, is_json in kinds])
        self._writer = pyarrow.csv.CSVWriter(out, self._schema)

    def add(self, batch: pa.RecordBatch) -> None:
        columns = [
            _as_json(column) if is_json else column
            for column, is_json in zip(batch.columns, self._is_json, strict=True)
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def end(self) -> None:
        self._writer.close()


class Parquet:
    """The rows with their types."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(out, schema, compression="zstd")

    def add(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def end(self) -> None:
        self._writer.close()


class Markdown:
    """A table that GitHub shows as one."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._out = out
        self._line([field.name for field in schema])
        self._line(["---:" if _is_number(field.type) else "---" for field in schema])

    def add(self, batch: pa.RecordBatch) -> None:
        for row in _rows(batch):
            self._line([_cell(value) for value in row])

    def end(self) -> None:
        self._out.flush()

    def _line(self, cells: list[str]) -> None:
        escaped = (" ".join(cell.replace("|", "\\|").split()) for cell in cells)
        self._out.write(f"| {' | '.join(escaped)} |\n".encode())


class Json:
    """A list of objects, one a row. Infinity and what is no number are texts: inf, -inf, nan."""

    def __init__(self, out: BinaryIO, schema: pa.Schema) -> None:
        self._out = out
        self._names = schema.names
        self._before = "[\n"

    def add(self, batch: pa.RecordBatch) -> None:
        for row in _rows(batch):
            line = json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False, allow_nan=False)
            self._out.write(f"{self._before}{line}".encode())
            self._before = ",\n"

    def end(self) -> None:
        self._out.write(b"[]\n" if self._before == "[\n" else b"\n]\n")


FILES: dict[str, Callable[[BinaryIO, pa.Schema], Format]] = {
    "csv": Csv,
    "parquet": Parquet,
    "markdown": Markdown,
    "json": Json,
}
"""Option -> what it writes."""


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    columns = [[_plain(value) for value in column.to_pylist(maps_as_pydicts="strict")] for column in batch.columns]
    return zip(*columns, strict=True)


def _plain(value: Any) -> Any:
    """As JSON has it; a time, a date or an interval as its text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.hex() if isinstance(value, bytes) else str(value)


def _as_json(column: pa.Array) -> pa.Array:
    plain = (_plain(value) for value in column.to_pylist(maps_as_pydicts="strict"))
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in plain]
    return pa.array(texts, pa.string())


def _cell(value: Any) -> str:
    """Of a plain value; six digits of a number with a fraction."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _fits_csv(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_interval(kind))
