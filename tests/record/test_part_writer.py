from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harness.record import storage, writer
from harness.record.schema import FORMAT_VERSION, REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter

MakeRow = Callable[..., dict[str, Any]]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_rows_come_back_as_they_were_given_sorted_by_time(tmp_path: Path, request_row: MakeRow) -> None:
    first = request_row(
        request_id="a", t_due=5, t_first=2**60 + 1, cached_tokens=0, itl_ms=[0.5, 2.0], path=[-(2**63), 7]
    )
    second = request_row(request_id="b", t_due=3, cached_tokens=None, ttft_ms=1.25, clock_stepped=False)
    parts = PartWriter(tmp_path, "requests/part-0000", REQUESTS)
    parts.add(first)
    parts.add(second)
    parts.flush()

    assert parts.parts == [("requests/part-0000-00000.parquet", 2)]
    table = pq.ParquetFile(tmp_path / "requests" / "part-0000-00000.parquet").read()
    assert table.schema.equals(REQUESTS, check_metadata=True)
    assert table.to_pylist() == [second, first]


def test_labels_come_back_as_name_and_value(tmp_path: Path, sample_row: MakeRow) -> None:
    parts = PartWriter(tmp_path, "server_metrics/part", SERVER_METRICS)
    parts.add(sample_row(labels={"engine": "0", "le": "+Inf"}))
    parts.add(sample_row(labels={}))
    parts.flush()

    table = pq.ParquetFile(tmp_path / "server_metrics" / "part-00000.parquet").read()
    assert table["labels"].to_pylist() == [[("engine", "0"), ("le", "+Inf")], []]


def test_a_part_says_its_version_and_lets_a_reader_skip_by_time(
    tmp_path: Path, sample_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 10)
    parts = PartWriter(tmp_path, "part", SERVER_METRICS)
    for time_ns in range(25, 0, -1):
        parts.add(sample_row(t_ns=time_ns))
    parts.flush()

    metadata = pq.ParquetFile(tmp_path / "part-00000.parquet").metadata
    assert metadata.metadata[b"kvswarm.format_version"] == str(FORMAT_VERSION).encode()
    ranges = []
    for group in range(metadata.num_row_groups):
        times = metadata.row_group(group).column(SERVER_METRICS.names.index("t_ns"))
        assert times.compression == "ZSTD"
        ranges.append((times.statistics.min, times.statistics.max))
        assert metadata.row_group(group).sorting_columns
    assert ranges == [(1, 10), (11, 20), (21, 25)]


def test_each_flush_makes_a_new_part_and_an_empty_one_makes_none(tmp_path: Path, sample_row: MakeRow) -> None:
    parts = PartWriter(tmp_path, "part", SERVER_METRICS)
    parts.flush()
    parts.add(sample_row())
    parts.flush()
    parts.flush()
    parts.add(sample_row())
    parts.add(sample_row())
    parts.flush()

    assert parts.parts == [("part-00000.parquet", 1), ("part-00001.parquet", 2)]
    assert files(tmp_path) == ["part-00000.parquet", "part-00001.parquet"]


def test_a_part_of_someone_else_is_never_overwritten(tmp_path: Path, sample_row: MakeRow) -> None:
    (tmp_path / "part-00000.parquet").write_bytes(b"precious")
    parts = PartWriter(tmp_path, "part", SERVER_METRICS)
    parts.add(sample_row())
    for _ in range(2):
        with pytest.raises(FileExistsError, match=r"part-00000\.parquet exists already"):
            parts.flush()

    assert (tmp_path / "part-00000.parquet").read_bytes() == b"precious"
    assert (parts.parts, parts.unwritten_rows) == ([], 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("ttft_ms"), "The row has no column 'ttft_ms'"),
        (lambda row: row.update(tftt_ms=1.0), "unknown columns: tftt_ms"),
        (lambda row: row.update(status=None), "Column 'status' must not be null"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_at_once(
    tmp_path: Path, request_row: MakeRow, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    row = request_row()
    change(row)
    parts = PartWriter(tmp_path, "part", REQUESTS)
    with pytest.raises(ValueError, match=message):
        parts.add(row)
    assert parts.unwritten_rows == 0


@pytest.mark.parametrize(
    ("column", "value"), [("turn", "two"), ("turn", 2**40), ("session", 2**70), ("error", 7), ("prompt_tokens", 1.5)]
)
def test_a_value_of_the_wrong_type_costs_its_own_row_and_no_other(
    tmp_path: Path, request_row: MakeRow, column: str, value: object
) -> None:
    parts = PartWriter(tmp_path, "part", REQUESTS)
    parts.add(request_row(request_id="good"))
    parts.add(request_row(request_id="bad", **{column: value}))
    parts.add(request_row(request_id="also good"))
    with pytest.raises(ValueError, match=f"Column '{column}' .* cannot hold a value"):
        parts.flush()
    parts.flush()

    table = pq.ParquetFile(tmp_path / "part-00000.parquet").read()
    assert table["request_id"].to_pylist() == ["good", "also good"]


def test_a_batch_holds_a_bounded_number_of_rows_and_of_list_values(
    tmp_path: Path, request_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    original = PartWriter._batch

    def spy(self: PartWriter, rows: list[tuple[Any, ...]]) -> Any:
        sizes.append(len(rows))
        return original(self, rows)

    monkeypatch.setattr(PartWriter, "_batch", spy)
    parts = PartWriter(tmp_path, "part", REQUESTS)
    for _ in range(2 * writer.BATCH_ROWS):
        parts.add(request_row())
    assert sizes == [writer.BATCH_ROWS, writer.BATCH_ROWS]
    long = request_row(path=[1] * (writer.BATCH_VALUES // 4), path_tokens=[1] * (writer.BATCH_VALUES // 4))
    parts.add(long)
    assert len(sizes) == 2
    parts.add(long)
    assert sizes == [writer.BATCH_ROWS, writer.BATCH_ROWS, 2]


def test_a_failed_flush_keeps_its_rows_for_the_next(
    tmp_path: Path, sample_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = PartWriter(tmp_path, "part", SERVER_METRICS)
    parts.add(sample_row(t_ns=1))
    with monkeypatch.context() as broken:

        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        broken.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            parts.flush()
    assert (files(tmp_path), parts.parts, parts.unwritten_rows) == ([], [], 1)
    parts.add(sample_row(t_ns=2))
    parts.flush()

    assert parts.parts == [("part-00000.parquet", 1), ("part-00001.parquet", 1)]
    assert parts.unwritten_rows == 0


class Killed(BaseException):
    """As gevent's GreenletExit: thrown into whoever waits for the thread."""


@pytest.mark.parametrize("thread_gets_through", [False, True])
def test_rows_are_neither_lost_nor_doubled_if_the_caller_is_killed_while_the_thread_writes(
    tmp_path: Path, sample_row: MakeRow, thread_gets_through: bool
) -> None:
    def killed(work: Callable[[], None]) -> None:
        if thread_gets_through:
            work()
        raise Killed

    runners = [killed, writer.in_this_thread]
    parts = PartWriter(tmp_path, "part", SERVER_METRICS, in_thread=lambda work: runners.pop(0)(work))
    parts.add(sample_row())
    with pytest.raises(Killed):
        parts.flush()
    parts.flush()

    assert parts.parts == [("part-00000.parquet", 1)]
    assert files(tmp_path) == ["part-00000.parquet"]


def test_rows_that_come_while_a_part_is_written_go_into_the_next(tmp_path: Path, sample_row: MakeRow) -> None:
    busy: list[bool] = []

    def meanwhile(work: Callable[[], None]) -> None:
        if not busy:
            busy.append(True)
            parts.add(sample_row(t_ns=2))
            parts.flush()
        work()

    parts = PartWriter(tmp_path, "part", SERVER_METRICS, in_thread=meanwhile)
    parts.add(sample_row(t_ns=1))
    parts.flush()

    assert parts.parts == [("part-00000.parquet", 1), ("part-00001.parquet", 1)]
    times = [pq.ParquetFile(tmp_path / name).read()["t_ns"].to_pylist() for name, _ in parts.parts]
    assert times == [[1], [2]]


def test_a_process_killed_between_write_and_rename_leaves_no_part(tmp_path: Path, sample_row: MakeRow) -> None:
    script = f"""
import os, signal
from harness.record import storage
from harness.record.schema import SERVER_METRICS
from harness.record.writer import PartWriter
sync = storage.os.fsync
def die_after(descriptor):
    sync(descriptor)
    os.kill(os.getpid(), signal.SIGKILL)
storage.os.fsync = die_after
parts = PartWriter({str(tmp_path)!r}, "part", SERVER_METRICS)
parts.add({sample_row()!r})
parts.flush()
"""
    root = Path(__file__).parents[2]
    died = subprocess.run(
        [sys.executable, "-c", script], cwd=root, check=False, env=os.environ | {"PYTHONPATH": str(root)}
    )
    assert died.returncode == -signal.SIGKILL

    (left,) = files(tmp_path)
    assert left.startswith(".tmp-part-00000-")
    assert list(tmp_path.glob("*.parquet")) == []
    assert storage.Folder.at(tmp_path.parent).files(tmp_path.name) == []
    again = PartWriter(tmp_path, "part", SERVER_METRICS)
    again.add(sample_row())
    again.flush()
    assert again.parts == [("part-00000.parquet", 1)]
