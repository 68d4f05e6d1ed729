"""How many bytes the weights are, or why that is not known."""

from __future__ import annotations

import json
from pathlib import Path

from harness.kv_size.weights import INDEX, Weights, weights_in, weights_of_gguf


def test_beside_a_config(tmp_path: Path) -> None:
    nothing = weights_in(tmp_path)
    assert nothing.size_bytes is None
    assert INDEX in nothing.source
    (tmp_path / "adapter.safetensors").write_bytes(b"x" * 5)
    assert weights_in(tmp_path) == Weights(5, "adapter.safetensors")
    for number in (1, 2):
        (tmp_path / f"model-{number}.safetensors").write_bytes(b"x" * 100)
    assert weights_in(tmp_path) == Weights(200, "2 files *.safetensors")
    (tmp_path / INDEX).write_text(json.dumps({"metadata": {"total_size": 190}}))
    assert weights_in(tmp_path) == Weights(190, INDEX)


def test_an_index_that_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x" * 7)
    for text in ("{}", "[]", "junk", json.dumps({"metadata": {"total_size": "many"}})):
        (tmp_path / INDEX).write_text(text)
        assert weights_in(tmp_path) == Weights(7, "model.safetensors")


def test_a_gguf_file_and_its_parts(tmp_path: Path) -> None:
    alone = tmp_path / "a.gguf"
    alone.write_bytes(b"x" * 9)
    assert weights_of_gguf(alone) == Weights(9, "a.gguf")
    parts = [tmp_path / f"b-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for part in parts[:2]:
        part.write_bytes(b"x" * 10)
    assert weights_of_gguf(parts[0]) == Weights(None, "b-00003-of-00003.gguf is not beside b-00001-of-00003.gguf")
    parts[2].write_bytes(b"x")
    assert weights_of_gguf(parts[0]) == Weights(21, "3 parts of b.gguf")
