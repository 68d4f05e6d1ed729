from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from harness.embedded.tiny_model import cache_folder, tiny_model, write_model
from harness.embedded.tiny_tokenizer import train
from harness.embedded.tiny_weights import Shape, tensors

SMALL = Shape(layers=1, hidden=64, heads=2, kv_heads=1, feed_forward=96)


def test_the_same_arguments_make_the_same_bytes(tmp_path: Path) -> None:
    first, second = tiny_model(SMALL, tmp_path / "a"), tiny_model(SMALL, tmp_path / "b")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()
    assert sorted(tmp_path.rglob("*")) == sorted([tmp_path / "a", tmp_path / "b", first, second])


def test_the_bytes_are_those_of_every_other_machine(tmp_path: Path) -> None:
    write_model(tmp_path / "model", SMALL, train(("red", "green", "blue")))
    assert hashlib.sha256((tmp_path / "model").read_bytes()).hexdigest() == (
        "14f539e60b5dff8ce6b82d90a313813adf96e47bc08fe30885836ed3d236c4c6"
    )


def test_a_model_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    path = tiny_model(SMALL, tmp_path)
    path.write_bytes(b"left alone")
    assert tiny_model(SMALL, tmp_path) == path
    assert path.read_bytes() == b"left alone"


def test_another_seed_is_another_file(tmp_path: Path) -> None:
    other = tiny_model(Shape(layers=1, hidden=64, heads=2, kv_heads=1, feed_forward=96, seed=2), tmp_path)
    assert other.name != tiny_model(SMALL, tmp_path).name
    assert other.read_bytes() != tiny_model(SMALL, tmp_path).read_bytes()


def test_weights_do_not_depend_on_the_machine() -> None:
    """The first weights, from PCG64's raw output (which NumPy keeps stable): 8 bytes of each number, lowest first."""
    gain = 64**0.5 / 64**0.5 / ((256**2 - 1) / 12) ** 0.5
    raw = int(np.random.PCG64(1).random_raw())
    expected = [((raw >> 8 * byte & 255) - 127.5) * gain for byte in range(8)]
    name, weights = next(tensors(SMALL, vocabulary_size=300, sayable=()))
    assert name == "token_embd.weight"
    assert weights[0, :8] == pytest.approx(expected, rel=1e-6)
    assert weights.std() == pytest.approx(1, rel=0.01)


def test_only_sayable_tokens_have_an_output_row() -> None:
    head = dict(tensors(SMALL, vocabulary_size=300, sayable={7, 9}))["output.weight"]
    assert [token for token in range(300) if head[token].any()] == [7, 9]


def test_the_cache_folder_follows_the_desktop_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/kvswarm")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ann")
    assert cache_folder() == Path("/home/ann/.cache/kvswarm")
