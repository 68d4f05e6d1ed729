"""`kvswarm repair`: what is there becomes readable, what is not known is said, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError, RecordError
from harness.record.manifest import Manifest, Phase
from harness.record.reader import open_run
from harness.record.repair import repair
from harness.record.run_directory import create
from harness.record.schema import FORMAT_VERSION, REQUESTS, SERVER_METRICS
from harness.record.writer import PartWriter

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def killed(tmp_path: Path, manifest: Manifest, request_row: MakeRow, sample_row: MakeRow) -> Path:
    """A run whose master was killed: 1 request of the check, 2 + 1 measured ones, 1 sample, and a half-written part."""
    directory = create(tmp_path, "r1")
    requests = PartWriter(directory.url, "requests/part-0000", REQUESTS)
    metrics = PartWriter(directory.url, "server_metrics/part", SERVER_METRICS)
    requests.add(request_row(phase="check", t_due=500, t_send=510, t_end=600))
    requests.flush()
    for dues in ((1_000, 1_200), (1_100,)):
        for due in dues:
            requests.add(request_row(t_due=due, t_send=due + 5, t_last=due + 90))
        requests.flush()
    metrics.add(sample_row())
    metrics.flush()
    manifest.phases = [Phase(phase="check", targets=("t",), start_ns=400, end_ns=700)]
    directory.write_manifest(manifest)
    (tmp_path / "r1" / "requests" / ".tmp-part-0000-00003-ab12").write_bytes(b"PAR1")
    return tmp_path / "r1"


def files(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_a_run_whose_master_was_killed_becomes_a_finished_record(killed: Path) -> None:
    before = files(killed)
    assert "repair" in open_run(killed).problems[0]
    done = repair(killed)
    manifest = open_run(killed).manifest
    assert manifest.state == "incomplete"
    assert (manifest.ended_ns, manifest.stopped_by) == (None, None)
    assert [(part.name, part.rows) for part in manifest.parts.requests] == [
        (f"requests/part-0000-0000{number}.parquet", rows) for number, rows in enumerate((1, 2, 1))
    ]
    assert [part.rows for part in manifest.parts.server_metrics] == [1]
    assert "knew no end of the run" in manifest.problems[0]
    assert open_run(killed).requests().num_rows == done.rows["requests"] == 4
    # The old one is kept, and every other file is as it was.
    after = files(killed)
    assert after.pop("run.json.before-repair") == before["run.json"]
    assert {**after, "run.json": before["run.json"]} == before
    assert done.half_written == ("requests/.tmp-part-0000-00003-ab12",)
    said = "\n".join(done.sentences())
    assert "4 rows of requests" in said
    assert ".tmp-part-0000-00003-ab12 is half-written" in said


def test_phases_that_nobody_wrote_down_are_as_long_as_their_rows(killed: Path) -> None:
    repair(killed)
    check, measure = open_run(killed).manifest.phases
    assert (check.start_ns, check.end_ns) == (400, 700)  # as the master had it
    assert (measure.phase, measure.targets, measure.start_ns, measure.end_ns) == ("measure", ("t",), 1_000, 1_290)


def test_a_run_that_is_whole_stays_as_it_is(killed: Path) -> None:
    repair(killed)
    before = files(killed)
    done = repair(killed)
    assert not done.changed
    assert files(killed) == before
    assert "is whole" in next(done.sentences())


def test_parts_that_are_gone_damaged_new_or_other_than_listed_are_named(killed: Path) -> None:
    repair(killed)
    gone, damaged, other = (killed / "requests" / f"part-0000-0000{number}.parquet" for number in range(3))
    other.rename(killed / "requests" / "part-0007-00000.parquet")
    gone.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-9])
    with pytest.raises(RecordError):
        open_run(killed)
    done = repair(killed)
    problems = " / ".join(done.problems)
    assert "requests/part-0000-00000.parquet is missing, and 1 rows with it" in problems
    assert "part-0000-00001.parquet is damaged" in problems
    assert "did not list requests/part-0007-00000.parquet" in problems
    assert done.kept == "run.json.before-repair-2"
    assert damaged.with_name(f"{damaged.name}.damaged").exists()
    assert open_run(killed).requests().num_rows == 1


@pytest.mark.parametrize("left", [None, b'{"format_version": 2, "run_id'])
def test_without_a_readable_run_json_the_rows_tell_what_they_can(killed: Path, left: bytes | None) -> None:
    (killed / "run.json").unlink()
    if left is not None:
        (killed / "run.json").write_bytes(left)
    done = repair(killed)
    manifest = open_run(killed).manifest
    assert (manifest.run_id, manifest.scenario_name, manifest.started_ns) == ("r1", "s", 500)
    assert [(target.name, target.identity) for target in manifest.targets] == [("t", {"engine": "e", "model": "m"})]
    assert [phase.phase for phase in manifest.phases] == ["check", "measure"]
    assert "scenario, who answered" in manifest.problems[0]
    assert done.kept == (None if left is None else "run.json.before-repair")
    if left is not None:
        assert (killed / "run.json.before-repair").read_bytes() == left


def test_a_run_before_its_first_row_is_finished_too(tmp_path: Path, manifest: Manifest) -> None:
    create(tmp_path, "r1").write_manifest(manifest)
    assert repair("r1", tmp_path).rows["requests"] == 0
    assert open_run(tmp_path / "r1").manifest.state == "incomplete"


def test_what_is_no_run_or_of_a_newer_format_is_left_alone(killed: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no run 'r9'"):
        repair("r9", tmp_path)
    newer = json.loads((killed / "run.json").read_text()) | {"format_version": FORMAT_VERSION + 1}
    (killed / "run.json").write_text(json.dumps(newer))
    before = files(killed)
    with pytest.raises(RecordError, match="install a newer kvswarm"):
        repair(killed)
    assert files(killed) == before
