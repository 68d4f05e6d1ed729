"""kv-size tells what llama.cpp's own server allocates for a cache, and what it writes of one, to the byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.kv_size.engine import Engine, StorageType
from harness.kv_size.engines import engines, mixed
from harness.kv_size.format import Format
from harness.kv_size.gguf_layers import read_gguf
from harness.kv_size.holding import size
from harness.kv_size.shape import Attention, Latent, Model
from tests.kv_size import small_models
from tests.kv_size.real_cache import Allocated, real_cache

LLAMA_CPP: Engine = next(one for one in engines() if one.name == "llama-cpp")
TYPES = {one.name: one for one in LLAMA_CPP.types}
OF_A_TOKEN = 4
"""Bytes of a token's id in a slot's file."""
OF_A_CELL = 12
"""Bytes of a token's place in one cache; a model with windows has two caches, one for the layers that have them."""
BESIDES = 256
"""More than what stands before a copy of a state."""
MIB = 1024**2


def kept(keys: str, values: str) -> StorageType:
    return mixed(TYPES[keys], TYPES[values])


@pytest.mark.parametrize(("keys", "values"), [("f16", "f16"), ("q8_0", "q8_0"), ("q8_0", "q4_0"), ("q5_1", "iq4_nl")])
def test_saved_slots_of_the_tiny_model(tiny_model: Path, tmp_path: Path, keys: str, values: str) -> None:
    model = read_gguf(tiny_model)
    with real_cache(tiny_model, keys, values, tmp_path) as server:
        first, second = server.saved_bytes(100), server.saved_bytes(400)
    assert second - first == 300 * (OF_A_TOKEN + OF_A_CELL + size(LLAMA_CPP, kept(keys, values), model).per_token)


@pytest.mark.parametrize("name", ["f16", "q8_0"])
def test_saved_slots_of_a_model_with_latent_vectors(tmp_path: Path, name: str) -> None:
    path = small_models.deepseek2(tmp_path / "model.gguf")
    with real_cache(path, name, name, tmp_path) as server:
        first, second = server.saved_bytes(100), server.saved_bytes(400)
    found = size(LLAMA_CPP, TYPES[name], read_gguf(path))
    assert second - first == 300 * (OF_A_TOKEN + OF_A_CELL + found.per_token)


@pytest.mark.parametrize("name", ["f16", "q8_0"])
def test_saved_slots_of_a_model_with_windows(tmp_path: Path, name: str) -> None:
    """The file also has a copy of the windows as they were after the first 512 tokens."""
    path = small_models.gemma3(tmp_path / "model.gguf")
    with real_cache(path, name, name, tmp_path) as server:
        sizes = [server.saved_bytes(tokens) for tokens in (600, 1000, 1500, 3000)]
    found = size(LLAMA_CPP, TYPES[name], read_gguf(path))
    assert sizes[1] - sizes[0] == 400 * (OF_A_TOKEN + 2 * OF_A_CELL + found.per_token)
    assert sizes[3] - sizes[2] == 1500 * (OF_A_TOKEN + OF_A_CELL + found.per_token_past_windows)


@pytest.mark.parametrize("name", ["f16", "q4_0"])
def test_saved_slots_of_a_hybrid_model(tmp_path: Path, name: str) -> None:
    """The file has the state, and copies of what it was before: one more of them after the first 512 tokens."""
    path = small_models.jamba(tmp_path / "model.gguf")
    with real_cache(path, name, name, tmp_path) as server:
        sizes = [server.saved_bytes(tokens) for tokens in (100, 500, 600, 1000)]
    found = size(LLAMA_CPP, TYPES[name], read_gguf(path))
    of_a_token = OF_A_TOKEN + OF_A_CELL + found.per_token
    assert sizes[1] - sizes[0] == sizes[3] - sizes[2] == 400 * of_a_token
    one_copy_more = sizes[2] - sizes[1] - 100 * of_a_token
    assert found.per_session <= one_copy_more < found.per_session + BESIDES


def mib(model: Model, packing: Format, tokens: int, which: str) -> str:
    """What the keys or the values of all these layers take, as the server writes it."""
    total = 0
    for layer in model.layers:
        if isinstance(layer, Latent):
            total += packing.bytes_of(layer.rank + layer.rope_size) if which == "keys" else 0
        elif isinstance(layer, Attention):
            total += layer.kv_heads * packing.bytes_of(layer.key_size if which == "keys" else layer.value_size)
    return f"{total * tokens / MIB:.2f}"


def allocation(model: Model, keys: str, values: str, tokens: int) -> Allocated:
    key_mib, value_mib = (
        mib(model, TYPES[keys].keys, tokens, "keys"),
        mib(model, TYPES[values].values, tokens, "values"),
    )
    holding = [layer for layer in model.layers if isinstance(layer, Attention | Latent)]
    return Allocated(tokens, len(holding), key_mib, value_mib)


def test_room_that_is_made_for_the_tiny_model(tiny_model: Path, tmp_path: Path) -> None:
    with real_cache(tiny_model, "q8_0", "q4_0", tmp_path) as server:
        assert server.allocated() == [allocation(read_gguf(tiny_model), "q8_0", "q4_0", 4096)]


def test_layers_with_a_window_get_room_for_the_window(tmp_path: Path) -> None:
    """And for a batch of 512 tokens besides, which is what is computed at a time."""
    path = small_models.gemma3(tmp_path / "model.gguf")
    model = read_gguf(path)
    full = replace(model, layers=tuple(one for one in model.layers if isinstance(one, Attention) and not one.window))
    windowed = replace(model, layers=tuple(one for one in model.layers if isinstance(one, Attention) and one.window))
    with real_cache(path, "f16", "f16", tmp_path) as server:
        expected = [allocation(full, "f16", "f16", 4096), allocation(windowed, "f16", "f16", 512 + 512)]
        assert server.allocated() == expected
    assert [len(full.layers), len(windowed.layers)] == [2, 10]
    assert size(LLAMA_CPP, kept("f16", "f16"), model).bytes_at(4096) == 2 * 128 * 4096 + 10 * 128 * 512


def test_mla_has_room_for_latent_vectors_and_none_for_values(tmp_path: Path) -> None:
    path = small_models.deepseek2(tmp_path / "model.gguf")
    with real_cache(path, "q8_0", "q8_0", tmp_path) as server:
        assert server.allocated() == [allocation(read_gguf(path), "q8_0", "q8_0", 4096)]
        assert server.allocated()[0].values_mib == "0.00"
