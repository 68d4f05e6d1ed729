from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.errors import InputError, RecordError
from harness.record.manifest import Manifest
from harness.record.reader import open_run
from harness.record.run_directory import create
from harness.record.schema import FORMAT_VERSION, REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, manifest: Manifest, request_row: MakeRow, sample_row: MakeRow) -> Path:
    """A complete run: two request parts with 2 and 1 rows, one metrics part with 1."""
    directory = create(tmp_path, "r1")
    requests = PartWriter(directory.url, "requests/part-0000", REQUESTS)
    metrics = PartWriter(directory.url, "server_metrics/part", SERVER_METRICS)
    for rows in (2, 1):
        for _ in range(rows):
            requests.add(request_row())
        requests.flush()
    metrics.add(sample_row())
    metrics.flush()
    manifest.add_parts("requests", requests.parts)
    manifest.add_parts("server_metrics", metrics.parts)
    manifest.state = "complete"
    directory.write_manifest(manifest)
    return tmp_path / "r1"


def change_manifest(run: Path, **changes: Any) -> None:
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_complete_run_is_read_without_complaint(run: Path) -> None:
    recorded = open_run(run)

    assert recorded.problems == ()
    assert recorded.manifest.run_id == "r1"
    assert recorded.requests().num_rows == 3
    assert recorded.requests().schema.equals(REQUESTS)
    assert recorded.server_metrics().num_rows == 1
    assert recorded.server_metrics().schema.equals(SERVER_METRICS)


def test_a_run_is_found_by_path_id_and_url(run: Path) -> None:
    for name in (run, str(run), f"file://{run}"):
        assert open_run(name).manifest.run_id == "r1"
    assert open_run("r1", base=run.parent).manifest.run_id == "r1"


def test_latest_is_the_run_that_started_last(run: Path, manifest: Manifest) -> None:
    for run_id, later_ns in (("c-newer", 2), ("b-newest", 3), ("m-older", -1)):
        other = manifest.model_copy(update={"run_id": run_id, "started_ns": manifest.started_ns + later_ns})
        other.parts = type(other.parts)()
        create(run.parent, run_id).write_manifest(other)
    (run.parent / "no-run").mkdir()

    assert open_run("latest", base=run.parent).manifest.run_id == "b-newest"


@pytest.mark.parametrize("name", ["r2", "latest"])
def test_a_run_that_is_not_there_is_the_users_mistake(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="There is no run"):
        open_run(name, base=tmp_path / "nowhere")


def test_a_missing_part_is_named(run: Path) -> None:
    (run / "requests" / "part-0000-00000.parquet").unlink()
    sentence = r"requests/part-0000-00000\.parquet is missing; run\.json says that it holds 2 rows"
    with pytest.raises(RecordError, match=sentence):
        open_run(run)
    recorded = open_run(run, strict=False)

    assert recorded.requests().num_rows == 1
    assert len(recorded.problems) == 1


def test_a_wrong_number_of_rows_is_named_with_both_numbers(run: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    content["parts"]["requests"][1]["rows"] = 7
    (run / "run.json").write_text(json.dumps(content))
    with pytest.raises(RecordError, match=r"part-0000-00001\.parquet holds 1 rows, run\.json says 7"):
        open_run(run)

    assert open_run(run, strict=False).requests().num_rows == 3


def test_a_damaged_part_is_named_and_left_out(run: Path) -> None:
    part = run / "requests" / "part-0000-00001.parquet"
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(RecordError, match=r"part-0000-00001\.parquet is damaged"):
        open_run(run)

    assert open_run(run, strict=False).requests().num_rows == 2


def test_a_complete_run_has_no_part_that_run_json_does_not_list(run: Path) -> None:
    (run / "requests" / "part-0009-00000.parquet").write_bytes(
        (run / "requests" / "part-0000-00001.parquet").read_bytes()
    )
    with pytest.raises(RecordError, match=r"run\.json does not list .*part-0009-00000\.parquet"):
        open_run(run)
    assert open_run(run, strict=False).requests().num_rows == 4


def test_an_incomplete_run_uses_the_parts_of_a_worker_that_died(run: Path) -> None:
    content = json.loads((run / "run.json").read_text())
    del content["parts"]["requests"][1]
    (run / "run.json").write_text(json.dumps(content | {"state": "incomplete"}))
    recorded = open_run(run)

    assert recorded.requests().num_rows == 3
    assert "incomplete" in recorded.problems[0]
    assert "part-0000-00001.parquet; its rows are used" in recorded.problems[1]


def test_a_run_whose_master_was_killed_has_the_parts_that_are_found(run: Path) -> None:
    change_manifest(run, state="running", parts={"requests": [], "server_metrics": []})
    (run / "requests" / ".tmp-part-0000-00002-0badcafe").write_bytes(b"PAR1")
    recorded = open_run(run)

    assert recorded.requests().num_rows == 3
    (problem,) = recorded.problems
    assert "has not ended, or its master was killed: its last rows may be missing" in problem
    assert f"repair {run} makes a finished record" in problem


def test_a_run_without_any_row_has_empty_tables(tmp_path: Path, manifest: Manifest) -> None:
    create(tmp_path, "r1").write_manifest(manifest)

    assert open_run(tmp_path / "r1").requests().schema.equals(REQUESTS)


def test_a_newer_format_asks_for_a_newer_kvswarm(run: Path) -> None:
    change_manifest(run, format_version=FORMAT_VERSION + 1)
    with pytest.raises(
        RecordError, match=f"format version {FORMAT_VERSION + 1}, this kvswarm reads up to {FORMAT_VERSION}"
    ):
        open_run(run)
    recorded = open_run(run, strict=False)

    assert recorded.requests().num_rows == 3
    assert "install a newer kvswarm" in recorded.problems[0]


def test_a_part_of_a_newer_worker_is_noticed(run: Path) -> None:
    path = run / "requests" / "part-0000-00001.parquet"
    table = pq.ParquetFile(path).read()
    metadata = table.schema.metadata | {b"kvswarm.format_version": b"9"}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    with pytest.raises(RecordError, match=r"part-0000-00001\.parquet has format version 9"):
        open_run(run)


def test_a_part_without_a_later_column_reads_as_null(run: Path) -> None:
    path = run / "requests" / "part-0000-00001.parquet"
    pq.write_table(pq.ParquetFile(path).read().drop_columns(["queue_ms"]), path)
    requests = open_run(run).requests()

    assert requests.num_rows == 3
    assert requests["queue_ms"].type == pa.float64()
    assert requests["queue_ms"].null_count == 3


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format_version": 1}'])
def test_a_damaged_run_json_is_named(run: Path, text: str) -> None:
    (run / "run.json").write_text(text)
    for strict in (True, False):
        with pytest.raises(RecordError, match=r"r1/run\.json is damaged"):
            open_run(run, strict=strict)


def test_latest_does_not_pass_over_a_damaged_run(run: Path) -> None:
    (run / "run.json").write_text("{")
    with pytest.raises(RecordError, match=r"r1/run\.json is damaged"):
        open_run("latest", base=run.parent)
