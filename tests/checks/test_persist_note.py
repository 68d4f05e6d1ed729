"""The note of what was saved: for its owner's eyes, and against caches of others."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.checks.persist_note import NAME, Note, named, read, refuse_elsewhere, refuse_others, write
from harness.engines.base import Identity
from harness.errors import InputError
from harness.record.manifest import Manifest
from harness.record.run_directory import create

IDENTITY = Identity(
    engine="llama-cpp",
    model="tiny",
    version="b1-abc",
    build="abc",
    tokenizer_fingerprint="t",
    template_fingerprint="c",
    details={"n_params": "9"},
)
NOTE = Note(file="a.bin", identity=named(IDENTITY), content_id=5, tokens=9, saved_tokens=20)


@pytest.fixture
def run(tmp_path: Path) -> str:
    """The directory of a run."""
    directory = create(tmp_path, "r1")
    directory.write_manifest(
        Manifest(
            kvswarm_version="1",
            run_id="r1",
            started_ns=time.time_ns(),
            options={},
            scenario_name="persist",
            scenario={},
            targets=[],
            versions={},
        )
    )
    return directory.url


def test_it_is_read_as_it_was_written_and_by_its_owner_alone(run: str, tmp_path: Path) -> None:
    write(run, NOTE)
    assert (Path(run) / NAME).stat().st_mode & 0o777 == 0o600
    assert read("r1", str(tmp_path)) == read(run, "elsewhere") == (Path(run), NOTE)


def test_the_same_identity_is_taken() -> None:
    refuse_others(NOTE, named(IDENTITY), "r1")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("engine", "vllm", "engine 'llama-cpp', and here engine is 'vllm'"),
        ("model", "large", "model 'tiny', and here model is 'large'"),
        ("build", "def", "build 'abc', and here build is 'def'"),
        ("tokenizer_fingerprint", "u", "tokenizer_fingerprint 't', and here tokenizer_fingerprint is 'u'"),
        ("kv_dtype", "q8_0", "kv_dtype none, and here kv_dtype is 'q8_0'"),
        ("details", {"n_params": "10"}, "n_params '9', and here n_params is '10'"),
    ],
)
def test_another_one_is_refused_by_the_name_of_the_field(field: str, value: object, words: str) -> None:
    other = replace(IDENTITY, **{field: value})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        refuse_others(NOTE, named(other), "r1")


def test_a_run_that_saved_nothing_is_refused(run: str) -> None:
    with pytest.raises(InputError, match=r"has no saved\.json"):
        read(run, "")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"file": 3}'])
def test_a_damaged_note_is_refused(text: str, run: str) -> None:
    (Path(run) / NAME).write_text(text)
    with pytest.raises(InputError, match=r"saved\.json is damaged"):
        read(run, "")


def test_a_place_where_others_could_read_it_is_refused() -> None:
    with pytest.raises(InputError, match="folder on this machine"):
        refuse_elsewhere("s3://bucket/runs")
