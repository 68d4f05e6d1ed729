"""A table of a run, read from its parts column by column: no more is in memory than what is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from harness.analysis.columns import NULLABLE, filled
from harness.record.reader import RecordedRun
from harness.record.schema import TABLES

_FEW = frozenset(
    {"target", "scenario", "kind", "phase", "warmth", "clock", "output_tokens_source", "status"}
    | {"moment", "replica", "name"}
)
"""Columns with few different texts: categories take a byte a row."""
_KEPT = frozenset(
    {"kind", "scenario", "phase", "warmth", "status", "t_send"}
    | {"cached_tokens", "prompt_tokens", "planned_prompt_tokens"}
)
"""Columns that several figures are made of: they are read once, together."""
_PIECE_ROWS = 500_000


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of one table, all or those of one target, in the order of the parts.

    Columns come as nullable integers and floats; texts that are few as categories in alphabetical order.
    """

    dataset: ds.Dataset
    target: str | None = None
    """None: the rows of all targets."""
    _kept: dict[str, pd.Series] = field(default_factory=dict)

    def of(self, target: str) -> Rows:
        """Those of one target."""
        return Rows(self.dataset, target)

    def count(self, where: pc.Expression | None = None) -> int:
        """How many rows there are, or those for which `where` holds; by the parts' statistics where they tell it."""
        n: int = self.dataset.count_rows(filter=self._where(where))
        return n

    def read(self, *names: str) -> pd.DataFrame:
        """Some columns of all rows."""
        missing = {name for name in names if name not in self._kept}
        if missing & _KEPT:
            missing |= _KEPT & set(self.dataset.schema.names)
        found = {}
        if missing:
            some = filled(self.dataset.schema, sorted(missing), self._length(), self._batches(missing))
            found = {name: some[name] for name in missing}
        self._kept.update({name: column for name, column in found.items() if name in _KEPT})
        return pd.DataFrame({name: found.get(name, self._kept.get(name)) for name in names}, copy=False)

    def forget(self) -> None:
        """The columns that were read and kept; they are read again when asked for."""
        self._kept.clear()

    def pieces(self, *names: str) -> Iterator[pd.DataFrame]:
        """The same in pieces, one after the other, for columns that are not all needed at once; one at least."""
        kept = {name: self._kept[name] for name in names if name in self._kept}
        others = [name for name in names if name not in kept]
        start = 0
        for batches in _together(self._batches(others)):
            length = sum(batch.num_rows for batch in batches)
            piece = filled(self.dataset.schema, others, length, batches)
            for name, column in kept.items():
                piece[name] = column.iloc[start : start + length].set_axis(piece.index)
            start += length
            yield piece

    def _batches(self, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
        yield from self.dataset.scanner(columns=list(names), filter=self._where(None)).to_batches()
        pa.default_memory_pool().release_unused()

    def _length(self) -> int:
        return len(next(iter(self._kept.values()))) if self._kept else self.count()

    def some(self, where: pc.Expression, *names: str) -> pd.DataFrame:
        """The rows for which `where` holds, with plain texts; row groups whose statistics rule it out are not read."""
        table = self.dataset.to_table(columns=list(names), filter=self._where(where))
        plain = [pa.field(one.name, _plain(one.type)) for one in table.schema]
        return frame(table.cast(pa.schema(plain)))

    def _where(self, where: pc.Expression | None) -> pc.Expression | None:
        if self.target is None:
            return where
        of_target = pc.field("target") == self.target
        return of_target if where is None else of_target & where


def rows_of(recorded: RecordedRun, name: str) -> Rows:
    """A table of a recorded run, of all targets. A part of another version may lack a column, which is null then."""
    few = [one for one in TABLES[name].names if one in _FEW]
    schema = pa.schema(
        [
            pa.field(one.name, pa.dictionary(pa.int32(), pa.string()) if one.name in few else one.type)
            for one in TABLES[name]
        ]
    )
    paths = [f"{recorded.folder.path}/{part}" for part in recorded.parts[name]]
    if not paths:
        return Rows(ds.dataset(schema.empty_table()))
    parquet = ds.ParquetFileFormat(dictionary_columns=few)
    return Rows(ds.dataset(paths, schema=schema, format=parquet, filesystem=recorded.folder.filesystem))


def frame(table: pa.Table) -> pd.DataFrame:
    """Whole, with nullable integers."""
    made: pd.DataFrame = table.to_pandas(types_mapper=NULLABLE.get)
    return made


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """`_PIECE_ROWS` rows or a few more at a time; once at least."""
    waiting: list[pa.RecordBatch] = []
    some = False
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _PIECE_ROWS:
            yield waiting
            waiting, some = [], True
    if waiting or not some:
        yield waiting


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
