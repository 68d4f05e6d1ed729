from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyarrow import fs

from harness.errors import InputError
from harness.record import storage
from harness.record.storage import Folder


def test_a_written_file_is_read_back_and_can_be_replaced(tmp_path: Path) -> None:
    folder = Folder.at(tmp_path)
    folder.write("sub/a.bin", b"one")
    folder.write("sub/a.bin", b"two")

    assert folder.read("sub/a.bin") == b"two"
    assert folder.files("sub") == ["sub/a.bin"]
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["a.bin"]


def test_a_file_url_is_the_same_place_as_its_path(tmp_path: Path) -> None:
    Folder.at(f"file://{tmp_path}").child("run").write("a", b"x")

    assert (tmp_path / "run" / "a").read_bytes() == b"x"
    assert Folder.at(f"file://{tmp_path}").child("run").url == f"file://{tmp_path}/run"


def test_a_relative_path_keeps_its_place_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder.at("results")
    monkeypatch.chdir("/")
    folder.write("a", b"x")

    assert (tmp_path / "results" / "a").read_bytes() == b"x"
    assert folder.name_of("a") == "results/a"


def test_options_at_the_end_of_a_url_stay_there() -> None:
    folder = Folder("s3://bucket/runs?scheme=http", fs.LocalFileSystem(), "bucket/runs").child("r1")

    assert folder.url == "s3://bucket/runs/r1?scheme=http"
    assert folder.path == "bucket/runs/r1"


def test_an_unknown_kind_of_url_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match="ftp://host/x cannot be used as a place for results"):
        Folder.at("ftp://host/x")


def test_a_failed_write_leaves_nothing_and_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder.at(tmp_path)
    folder.write("a", b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write("a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert folder.read("a") == b"old"


@pytest.mark.parametrize("is_object_store", [False, True])
def test_other_file_systems_work_with_and_without_a_rename(
    is_object_store: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves = []

    class Remote(fs.PyFileSystem):  # type: ignore[misc]
        def move(self, source: str, target: str) -> None:
            moves.append((source, target))
            super().move(source, target)

    remote = Remote(fs.FSSpecHandler(_memory_file_system()))
    if is_object_store:
        monkeypatch.setattr(storage, "OBJECT_STORES", {remote.type_name})
    folder = Folder("memory://bucket", remote, "/bucket").child("run")
    folder.make_new()
    folder.write("requests/a.parquet", b"x")

    assert folder.read("requests/a.parquet") == b"x"
    assert folder.files("requests") == ["requests/a.parquet"]
    assert Folder("memory://bucket", remote, "/bucket").folders() == ["run"]
    assert len(moves) == (0 if is_object_store else 1)
    with pytest.raises(FileExistsError):
        folder.make_new()


def _memory_file_system() -> object:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory", skip_instance_cache=True)
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    return memory
