"""Columns of a table as pandas takes them, put together from batches into arrays of their whole length.

Memory that is new to a process costs more than what is done with it: each array is made once, and filled in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

NULLABLE = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
"""Plain pandas would turn a column of stamps with one null into floats, and lose nanoseconds."""
_STRETCH_ROWS = 100_000


def stretches(rows: int) -> Iterator[slice]:
    """All rows in pieces, so short that what is worked out on the way stays in the processor's cache."""
    for start in range(0, rows, _STRETCH_ROWS):
        yield slice(start, min(start + _STRETCH_ROWS, rows))


def filled(schema: pa.Schema, names: Sequence[str], rows: int, batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
    """Shape (rows, names), of batches that have so many rows together.

    Numbers and truths that can be null are nullable; dictionaries are categories in alphabetical order, whatever the
    batches' own dictionaries are; all else is as pyarrow makes it.
    """
    columns = {name: _column(schema.field(name).type, rows) for name in names}
    start = 0
    for batch in batches:
        for name, column in columns.items():
            column.take(start, batch.column(name))
        start += batch.num_rows
    return pd.DataFrame({name: column.series() for name, column in columns.items()}, pd.RangeIndex(rows), copy=False)


def _column(kind: pa.DataType, rows: int) -> _Nullable | _Floats | _Categories | _Objects:
    if kind in NULLABLE:
        return _Nullable(kind, rows)
    if pa.types.is_floating(kind):
        return _Floats(kind, rows)
    return _Categories(rows) if pa.types.is_dictionary(kind) else _Objects()


class _Nullable:
    """Integers, and truths."""

    def __init__(self, kind: pa.DataType, rows: int) -> None:
        self._values = np.empty(rows, dtype=kind.to_pandas_dtype())
        self._is_null = np.zeros(rows, dtype=bool)
        self._fill = pa.scalar(0).cast(kind)

    def take(self, start: int, array: pa.Array) -> None:
        here = slice(start, start + len(array))
        if array.null_count:
            self._is_null[here] = array.is_null().to_numpy(zero_copy_only=False)
            array = array.fill_null(self._fill)
        self._values[here] = array.to_numpy(zero_copy_only=False)

    def series(self) -> pd.Series:
        made = pd.arrays.BooleanArray if self._values.dtype == bool else pd.arrays.IntegerArray
        return pd.Series(made(self._values, self._is_null), copy=False)


class _Floats:
    def __init__(self, kind: pa.DataType, rows: int) -> None:
        self._values = np.empty(rows, dtype=kind.to_pandas_dtype())

    def take(self, start: int, array: pa.Array) -> None:
        self._values[start : start + len(array)] = array.to_numpy(zero_copy_only=False)

    def series(self) -> pd.Series:
        return pd.Series(self._values, copy=False)


class _Categories:
    """Few different texts: a byte a row, as long as they are no more than 127."""

    def __init__(self, rows: int) -> None:
        self._codes = np.empty(rows, dtype=np.int8)
        self._code_of: dict[str, int] = {}

    def take(self, start: int, array: pa.DictionaryArray) -> None:
        code_of = self._code_of
        codes = [code_of.setdefault(text, len(code_of)) for text in array.dictionary.to_pylist()]
        if len(code_of) > np.iinfo(self._codes.dtype).max:
            self._codes = self._codes.astype(np.min_scalar_type(-len(code_of)))
        indices = array.indices.fill_null(len(codes)) if array.null_count else array.indices
        self._codes[start : start + len(array)] = np.array([*codes, -1])[indices.to_numpy()]

    def series(self) -> pd.Series:
        texts = sorted(self._code_of)
        place = {text: number for number, text in enumerate(texts)}
        ordered = np.array([*(place[text] for text in self._code_of), -1], dtype=self._codes.dtype)
        if not np.array_equal(ordered[:-1], np.arange(len(texts))):
            self._codes = ordered[self._codes]
        of_texts = pd.CategoricalDtype(pd.Index(texts, dtype=pd.StringDtype(na_value=np.nan)))
        return pd.Series(pd.Categorical.from_codes(self._codes, dtype=of_texts, validate=False), copy=False)


class _Objects:
    """Lists, and texts that are many."""

    def __init__(self) -> None:
        self._pieces: list[pd.Series] = []

    def take(self, start: int, array: pa.Array) -> None:
        self._pieces.append(array.to_pandas())

    def series(self) -> pd.Series:
        return pd.concat(self._pieces, ignore_index=True) if self._pieces else pd.Series(dtype=object)
