from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from harness.engines.base import Status
from harness.record.schema import FORMAT_VERSION, REQUESTS, SERVER_METRICS, TABLES

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def documented(table: str) -> dict[str, tuple[str, ...]]:
    """Column -> (type, unit, meaning, meaning of null) as docs/results.md has them."""
    section = PAGE.read_text().split(f"### `{table}`")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", section, flags=re.MULTILINE)
    return {name: tuple(cell.strip() for cell in cells.split(" | ")) for name, cells in rows}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_the_page_and_the_schema_describe_the_same_columns_in_the_same_words(table: str) -> None:
    in_schema = {}
    for field in TABLES[table]:
        told = {key.decode(): value.decode() for key, value in field.metadata.items()}
        in_schema[field.name] = (
            str(field.type).replace("element: ", ""),
            told["unit"],
            told["description"],
            told["null"] or "never",
        )

    assert documented(table) == in_schema
    assert list(documented(table)) == TABLES[table].names


@pytest.mark.parametrize("schema", TABLES.values(), ids=TABLES)
def test_a_column_can_be_null_exactly_if_its_null_has_a_meaning(schema: pa.Schema) -> None:
    for field in schema:
        assert field.nullable == bool(field.metadata[b"null"]), field.name


def test_a_file_tells_its_table_version_and_order() -> None:
    for name, schema in TABLES.items():
        assert schema.metadata[b"kvswarm.table"].decode() == name
        assert schema.metadata[b"kvswarm.format_version"] == str(FORMAT_VERSION).encode()
        sorted_by = schema.field(schema.metadata[b"kvswarm.sorted_by"].decode())
        assert sorted_by.type == pa.int64()
        assert not sorted_by.nullable


def test_cached_tokens_can_be_null_as_that_is_not_the_same_as_zero() -> None:
    assert REQUESTS.field("cached_tokens").nullable
    assert SERVER_METRICS.field("reset").nullable


def test_every_status_is_described() -> None:
    description = REQUESTS.field("status").metadata[b"description"].decode()
    assert [status for status in get_args(Status) if not re.search(rf"\b{status}\b", description)] == []


def test_the_history_ends_with_the_current_version() -> None:
    from harness.record import schema

    history = re.findall(r"^    (\d+)   ", schema.__doc__ or "", flags=re.MULTILINE)
    assert [int(version) for version in history] == list(range(1, FORMAT_VERSION + 1))
