from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import InputError, RecordError
from harness.record.manifest import Manifest
from harness.record.run_directory import create


def test_a_run_gets_a_directory_below_the_base_which_may_be_new(tmp_path: Path) -> None:
    directory = create(tmp_path / "not" / "yet", "20261129-demo")

    assert directory.url == str(tmp_path / "not" / "yet" / "20261129-demo")
    assert Path(directory.url).is_dir()


def test_a_second_run_with_the_same_id_is_refused(tmp_path: Path) -> None:
    create(tmp_path, "r1")
    with pytest.raises(InputError, match="r1 exists already; choose another run id"):
        create(tmp_path, "r1")


def test_a_place_that_cannot_hold_a_directory_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made: Not a directory; choose another place"):
        create(tmp_path / "file", "r1")


@pytest.mark.parametrize("run_id", ["", "a/b", "../a", ".hidden", "latest", "a b"])
def test_an_id_that_is_no_plain_name_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(InputError, match="cannot be the id of a run"):
        create(tmp_path, run_id)
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_can_be_written_again_and_is_plain_json(tmp_path: Path, manifest: Manifest) -> None:
    directory = create(tmp_path, "r1")
    directory.write_manifest(manifest)
    assert json.loads((tmp_path / "r1" / "run.json").read_text())["state"] == "running"
    manifest.state = "complete"
    directory.write_manifest(manifest)

    assert json.loads((tmp_path / "r1" / "run.json").read_text())["state"] == "complete"
    assert [path.name for path in (tmp_path / "r1").iterdir()] == ["run.json"]


def test_a_manifest_that_cannot_be_written_is_a_sentence(tmp_path: Path, manifest: Manifest) -> None:
    directory = create(tmp_path, "r1")
    (tmp_path / "r1").rmdir()
    (tmp_path / "r1").write_text("")
    with pytest.raises(RecordError, match=r"run\.json could not be written"):
        directory.write_manifest(manifest)
