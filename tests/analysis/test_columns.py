"""Columns put together from batches are those that pyarrow would have made of the whole table."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from harness.analysis.columns import NULLABLE, filled, stretches

SCHEMA = pa.schema(
    [
        ("stamp", pa.int64()), ("tokens", pa.int32()), ("stepped", pa.bool_()), ("ms", pa.float64()),
        ("lag", pa.float32()), ("path", pa.list_(pa.int64())), ("id", pa.string()),
    ]
)  # fmt: skip
ROWS = [
    (2**62 + 1, 5, True, 0.5, 0.25, [1, 2], "a"),
    (None, None, None, None, None, None, None),
    (-3, 7, False, 2.5, 0.5, [], "b"),
    (2**62 + 3, None, True, None, 1.0, [3], "a"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batches_of_any_length_make_the_same_columns(size: int) -> None:
    table = pa.table([list(column) for column in zip(*ROWS, strict=True)], schema=SCHEMA)
    made = filled(SCHEMA, SCHEMA.names, len(ROWS), table.to_batches(max_chunksize=size))
    pd.testing.assert_frame_equal(made, table.to_pandas(types_mapper=NULLABLE.get))
    assert made["stamp"][0] == 2**62 + 1  # a float would have lost it


def test_texts_are_categories_in_alphabetical_order_whatever_the_batches_call_them() -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    batches = [
        pa.record_batch([pa.array(texts).dictionary_encode().cast(kind)], names=["status"])
        for texts in (["ok", None, "timeout"], ["cancelled", "ok"], ["timeout"])
    ]
    made = filled(pa.schema([("status", kind)]), ["status"], 6, batches)["status"]
    assert made.tolist() == ["ok", pytest.approx(float("nan"), nan_ok=True), "timeout", "cancelled", "ok", "timeout"]
    assert made.cat.categories.tolist() == ["cancelled", "ok", "timeout"]
    assert made.cat.codes.dtype == "int8"


def test_there_can_be_more_texts_than_a_byte_tells_apart() -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    texts = [f"metric_{number}" for number in range(300)]
    batches = [
        pa.record_batch([pa.array(some).dictionary_encode().cast(kind)], names=["name"])
        for some in (texts[:100], texts[100:], texts[::-1])
    ]
    made = filled(pa.schema([("name", kind)]), ["name"], 600, batches)["name"]
    assert made.tolist() == texts + texts[::-1]


def test_of_no_batches_there_are_columns_without_rows() -> None:
    made = filled(SCHEMA, SCHEMA.names, 0, [])
    assert (made.shape, made["tokens"].dtype) == ((0, 7), pd.Int32Dtype())


@pytest.mark.parametrize("rows", [0, 1, 100_000, 250_001])
def test_stretches_are_all_rows_once(rows: int) -> None:
    assert [number for part in stretches(rows) for number in range(part.start, part.stop)] == list(range(rows))
