"""Rows to Parquet parts, with a bounded stall for the loop that delivers the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.record.schema import EPOCH_NS
from harness.record.storage import Folder

BATCH_ROWS = 256
BATCH_VALUES = 32_768
"""A batch is also closed at this many list elements, so that long paths do not lengthen the stall."""
ROW_GROUP_ROWS = 16_384
"""Small enough that a reader who wants a minute of a long run skips most of it by the statistics of the time column."""

InThread = Callable[[Callable[[], None]], object]
"""Runs a function, in another thread or not, and returns when it is through; its exceptions come out."""

# Its first conversion makes pyarrow import pandas, if that is installed: better now than between two measured requests.
pa.array(())


class PartStore(Protocol):
    """Where finished parts go; a `Folder` is one."""

    def exists(self, name: str) -> bool: ...

    def name_of(self, name: str) -> str: ...

    def write(self, name: str, data: bytes | pa.Buffer) -> None: ...


def in_this_thread(work: Callable[[], None]) -> None:
    work()


@dataclass(slots=True, eq=False)
class _Part:
    name: str
    batches: list[pa.RecordBatch]
    begun: bool = False

    @property
    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches)


class PartWriter:
    """Collects rows and writes them as parts `<prefix>-<number>.parquet` below a folder.

    `add` is cheap, and once in `BATCH_ROWS` rows turns them into an Arrow batch, which holds no Python objects. `flush`
    writes all rows so far as one part, sorted by the schema's time column. Sorting, encoding and writing happen in
    `in_thread`. If a flush fails, or its caller is killed meanwhile, the next one writes the same part again: no row
    is lost or doubled.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | PartStore,
        name_prefix: str,
        schema: pa.Schema,
        *,
        in_thread: InThread = in_this_thread,
        clock_ahead_ns: int = 0,
    ) -> None:
        """`folder`: a path, pyarrow.fs URL or store; `name_prefix` may begin with sub-folders. Raises InputError.

        `clock_ahead_ns`: this machine's clock minus that of the run; it is taken off every column of times.
        """
        self._folder: PartStore = Folder.at(folder) if isinstance(folder, str | os.PathLike) else folder
        self._prefix = name_prefix
        self._schema = schema
        self._in_thread = in_thread
        self._cells = itemgetter(*schema.names)
        self._lists = [i for i, field in enumerate(schema) if pa.types.is_nested(field.type)]
        self._clock_ahead_ns = clock_ahead_ns
        self._required = [i for i, field in enumerate(schema) if not field.nullable]
        self._rows: list[tuple[Any, ...]] = []
        self._list_values = 0
        self._batches: list[pa.RecordBatch] = []
        self._waiting: list[_Part] = []
        self._parts: list[tuple[str, int]] = []
        self._next_number = 0

    @property
    def parts(self) -> list[tuple[str, int]]:
        """(name, rows) of each part written, names relative to the folder."""
        return list(self._parts)

    @property
    def unwritten_rows(self) -> int:
        in_batches: int = sum(batch.num_rows for batch in self._batches)
        return len(self._rows) + in_batches + sum(part.rows for part in self._waiting)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take one row, all columns of the schema and no others; what is unknown is None.

        Raises ValueError if a column is missing, unknown, null against the schema, or (for the 256th row, about any
        of the last 256) of the wrong type; that row is dropped, no other.
        """
        try:
            cells = self._cells(row)
        except KeyError as error:
            raise ValueError(f"The row has no column {error}; give None where a value is unknown.") from error
        if len(row) != len(cells):
            raise ValueError(f"The row has unknown columns: {', '.join(sorted(set(row) - set(self._schema.names)))}.")
        for i in self._required:
            if cells[i] is None:
                raise ValueError(f"Column {self._schema.names[i]!r} must not be null.")
        self._rows.append(cells)
        for i in self._lists:
            if cells[i] is not None:
                self._list_values += len(cells[i])
        if len(self._rows) >= BATCH_ROWS or self._list_values >= BATCH_VALUES:
            self._close_batch()

    def flush(self) -> None:
        """Write all rows so far as one part; nothing if there are none.

        Raises OSError if it cannot be written (the rows are kept for the next flush; FileExistsError if a part of this
        name is there already), ValueError as `add` does.
        """
        self._close_batch()
        if self._batches:
            name = f"{self._prefix}-{self._next_number:05d}.parquet"
            self._next_number += 1
            self._waiting.append(_Part(name, self._batches))
            self._batches = []
        for part in list(self._waiting):
            self._in_thread(lambda part=part: self._write(part))  # type: ignore[misc]
            # Other greenlets may have flushed meanwhile.
            if part in self._waiting:
                self._waiting.remove(part)
                self._parts.append((part.name, part.rows))

    def _close_batch(self) -> None:
        if not self._rows:
            return
        try:
            batch = self._batch(self._rows)
        except ValueError:
            self._drop_bad_row()
            raise
        self._batches.append(batch)
        self._rows = []
        self._list_values = 0

    def _batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        arrays = []
        for field, cells in zip(self._schema, zip(*rows, strict=True), strict=True):
            if pa.types.is_integer(field.type) and any(issubclass(kind, float) for kind in set(map(type, cells))):
                # pyarrow would cut the fraction off without a word.
                raise ValueError(f"Column {field.name!r} ({field.type}) cannot hold a value: it is a float.")
            try:
                array = pa.array(cells, type=field.type)
                is_time = (field.metadata or {}).get(b"unit") == EPOCH_NS.encode()
                arrays.append(pc.subtract(array, self._clock_ahead_ns) if is_time and self._clock_ahead_ns else array)
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise ValueError(f"Column {field.name!r} ({field.type}) cannot hold a value: {error}.") from error
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _drop_bad_row(self) -> None:
        for i, row in enumerate(self._rows):
            try:
                self._batch([row])
            except ValueError:
                del self._rows[i]
                return

    def _write(self, part: _Part) -> None:
        if not part.begun and self._folder.exists(part.name):
            raise FileExistsError(f"{self._folder.name_of(part.name)} exists already; parts are never overwritten")
        part.begun = True
        self._folder.write(part.name, _encode(pa.Table.from_batches(part.batches)))


def _encode(table: pa.Table) -> pa.Buffer:
    """The table as a Parquet file, sorted by its time column."""
    order = [(table.schema.metadata[b"kvswarm.sorted_by"].decode(), "ascending")]
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.sort_by(order),
        sink,
        compression="zstd",
        row_group_size=ROW_GROUP_ROWS,
        write_statistics=True,
        sorting_columns=pq.SortingColumn.from_ordering(table.schema, order),
    )
    return sink.getvalue()
