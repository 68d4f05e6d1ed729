"""A run is read column by column: what is asked for, once, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from harness.analysis import Run, load
from harness.analysis.report import as_json
from harness.analysis.rows import Rows, rows_of
from harness.record.reader import RecordedRun
from tests.analysis.prompts import asked
from tests.analysis.rows import request, sample, scrape, second, target

MakeRun = Callable[..., Run]
HEAVY = ("itl_ms", "error", "user", "bytes", "connect_ms", "model")
"""Columns that no figure of the summary is made of."""


def rows() -> list[dict[str, object]]:
    return [
        asked([(1, 100)], at_s, at_s + 0.1, 0, t_due=at_s, path_levels=["system"], itl_ms=[1.0] * 50, error="words")
        for at_s in range(6)
    ]


def test_the_summary_of_a_run_that_lacks_the_columns_it_does_not_need_is_the_same(
    make_run: MakeRun, tmp_path: Path
) -> None:
    made = make_run(rows(), [*scrape(1, "before", {"hits_total": 0.0}), *scrape(2, "after", {"hits_total": 5.0})])
    whole = as_json([made])
    (part,) = made.recorded.parts["requests"]
    path = f"{made.recorded.folder.path}/{part}"
    pq.write_table(pq.read_table(path).drop_columns(HEAVY), path)

    assert as_json([load(made.recorded.folder.path)]) == whole


def test_whole_tables_are_not_read_for_a_summary(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_run(rows(), [*scrape(1, "before", {"hits_total": 0.0})], health=[second(0)])
    for name in ("requests", "server_metrics"):
        monkeypatch.setattr(RecordedRun, name, property(lambda run: pytest.fail("a whole table was read")))
    assert '"hit_rate"' in as_json([made])


def test_columns_come_narrow_and_with_nulls(make_run: MakeRun) -> None:
    made = make_run([request(t_due=1, cached_tokens=None, ttft_ms=2.0), request(t_due=2, cached_tokens=0, kind=None)])
    found = rows_of(made.recorded, "requests").read("kind", "cached_tokens", "ttft_ms")

    assert found.columns.tolist() == ["kind", "cached_tokens", "ttft_ms"]
    assert [str(kind) for kind in found.dtypes] == ["category", "Int32", "float64"]
    assert found["kind"].isna().tolist() == [False, True]
    assert found["cached_tokens"].tolist() == [pd.NA, 0]


def test_pieces_are_the_whole_in_its_order(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.analysis.rows._PIECE_ROWS", 2)
    made = make_run([request(t_due=n, status=f"s{9 - n}", target="tu"[n % 2]) for n in range(8)])
    table = rows_of(made.recorded, "requests")
    of_target = table.of("u")

    assert pd.concat(table.pieces("t_due"))["t_due"].tolist() == list(range(8))
    read = of_target.read("t_due", "status", "ttft_ms")
    assert read["t_due"].tolist() == [1, 3, 5, 7]
    assert read["status"].tolist() == ["s8", "s6", "s4", "s2"]
    assert read["status"].cat.categories.tolist() == sorted(read["status"].cat.categories)


def test_a_table_without_parts_has_its_columns_and_no_rows(make_run: MakeRun) -> None:
    table = rows_of(make_run([]).recorded, "requests")
    assert table.read("status", "t_send").shape == (0, 2)
    assert table.some(pc.field("t_send") > 0, "path", "status").shape == (0, 2)


def test_some_rows_come_with_lists_and_plain_texts(make_run: MakeRun) -> None:
    made = make_run([request(t_due=1), request(t_due=2, path=[5, 6], cache_salt="x")])
    found = rows_of(made.recorded, "requests").some(pc.field("t_due") > 1, "path", "phase", "cache_salt")
    assert [list(path) for path in found["path"]] == [[5, 6]]
    assert found["phase"].tolist() == ["measure"]
    assert not isinstance(found["phase"].dtype, pd.CategoricalDtype)


def test_labels_are_read_of_the_engines_own_metrics_only(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page has thousands of samples, whose labels are texts."""
    made = make_run([request()], [sample("other", 1.0, 1, "before", labels={"a": "b"})] * 3, targets=[target()])
    read: list[pd.DataFrame] = []
    some = Rows.some

    def watched(self: Rows, where: pc.Expression, *names: str) -> pd.DataFrame:
        read.append(some(self, where, *names))
        return read[-1]

    monkeypatch.setattr(Rows, "some", watched)
    as_json([made])
    assert [len(found) for found in read if "labels" in found] == [0]
