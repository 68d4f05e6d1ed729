"""Layers from GGUF files: the tiny model's own, those of other architectures, and files that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.kv_size.gguf_file import is_gguf, read_metadata
from harness.kv_size.gguf_layers import read_gguf
from harness.kv_size.shape import Attention, Latent, Model, Recurrence, State
from tests.kv_size import small_models
from tests.kv_size.small_models import write_gguf

BASE: dict[str, Any] = {
    "block_count": 6,
    "embedding_length": 64,
    "context_length": 4096,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}


def read(folder: Path, architecture: str, **more: Any) -> Model:
    """A file with the base's keys and these (dots are written __; ... leaves one out)."""
    keys = BASE | {key.replace("__", "."): value for key, value in more.items()}
    keys = {key: value for key, value in keys.items() if value is not ...}
    return read_gguf(write_gguf(folder / "model.gguf", architecture, keys))


def windows(model: Model) -> list[int | None]:
    return [layer.window for layer in model.layers if isinstance(layer, Attention)]


def test_the_tiny_model(tiny_model: Path) -> None:
    model = read_gguf(tiny_model)
    assert model.kinds() == {Attention(2, 64, 64): 8}
    assert model.context_tokens == 32768


def test_small_models_of_other_kinds(tmp_path: Path) -> None:
    gemma3 = read_gguf(small_models.gemma3(tmp_path / "a.gguf"))
    assert windows(gemma3) == [512] * 5 + [None] + [512] * 5 + [None]
    assert read_gguf(small_models.deepseek2(tmp_path / "b.gguf")).kinds() == {Latent(64, 32): 2}
    jamba = read_gguf(small_models.jamba(tmp_path / "c.gguf"))
    assert [type(layer) for layer in jamba.layers] == [State, Attention, State, State]
    assert jamba.layers[0] == State(Recurrence.MAMBA, 3 * 128, 16 * 128)


def test_sizes_that_are_not_written_are_worked_out(tmp_path: Path) -> None:
    assert read(tmp_path, "llama").kinds() == {Attention(2, 16, 16): 6}
    assert read(tmp_path, "llama", attention__head_count_kv=...).kinds() == {Attention(4, 16, 16): 6}
    written = read(tmp_path, "llama", attention__key_length=24, attention__value_length=8)
    assert written.kinds() == {Attention(2, 24, 8): 6}


def test_kv_heads_of_each_layer(tmp_path: Path) -> None:
    model = read(tmp_path, "deci", attention__head_count_kv=[4, 0, 2, 2, 0, 1])
    assert [layer.kv_heads for layer in model.layers if isinstance(layer, Attention)] == [4, 2, 2, 1]


@pytest.mark.parametrize(
    ("architecture", "more", "expected"),
    [
        ("gpt-oss", {}, [100, None, 100, None, 100, None]),
        ("gemma3", {"attention__sliding_window_pattern": 3}, [100, 100, None, 100, 100, None]),
        ("smallthinker", {}, [None, 100, 100, 100, None, 100]),
        ("gemma2", {"attention__sliding_window": ...}, [4096, None] * 3),
        (
            "step35",
            {"attention__sliding_window_pattern": [True, False, True, True, True, False]},
            [100, None, 100, 100, 100, None],
        ),
        ("gemma4", {"attention__sliding_window_pattern": [1, 0, 1, 1, 1, 0]}, [100, None, 100, 100, 100, None]),
        ("lfm2", {}, [100] * 6),
        ("llama", {}, [None] * 6),
    ],
)
def test_which_layers_have_a_window(
    tmp_path: Path, architecture: str, more: dict[str, Any], expected: list[int | None]
) -> None:
    model = read(tmp_path, architecture, **({"attention__sliding_window": 100} | more))
    assert windows(model) == expected
    assert bool(model.notes) == (architecture == "llama")


def test_layers_with_a_window_may_have_other_heads(tmp_path: Path) -> None:
    more = {"attention__sliding_window": 100, "attention__sliding_window_pattern": [1, 0, 1, 1, 1, 0]}
    more |= {"attention__key_length": 32, "attention__value_length": 32}
    model = read(tmp_path, "gemma4", attention__key_length_swa=16, attention__value_length_swa=16, **more)
    assert model.kinds() == {Attention(2, 16, 16, 100): 4, Attention(2, 32, 32): 2}


def test_layers_that_share_keys_and_values_are_left_out(tmp_path: Path) -> None:
    pattern = {"attention__sliding_window": 9, "attention__sliding_window_pattern": [1, 0] * 3}
    assert len(read(tmp_path, "gemma4", attention__shared_kv_layers=4, **pattern).layers) == 2
    gemma3n = read(tmp_path, "gemma3n", block_count=30, attention__sliding_window=512)
    assert windows(gemma3n) == ([512] * 4 + [None]) * 4
    assert "10 layers" in gemma3n.notes[0]


def test_mla_and_index_keys(tmp_path: Path) -> None:
    latent = {"attention__key_length": 576, "attention__value_length": 512, "attention__kv_lora_rank": 512}
    latent |= {"attention__key_length_mla": 192, "attention__value_length_mla": 128, "attention__head_count_kv": 1}
    assert read(tmp_path, "deepseek2", **latent).kinds() == {Latent(512, 64): 6}
    index = latent | {"attention__indexer__key_length": 128}
    assert read(tmp_path, "deepseek32", nextn_predict_layers=1, **index).kinds() == {Latent(512, 64, 128): 5}
    older = {"attention__key_length": 192, "attention__value_length": 128, "attention__kv_lora_rank": 512}
    assert read(tmp_path, "deepseek2", attention__head_count_kv=4, **older).kinds() == {Attention(4, 192, 128): 6}


def test_hybrids(tmp_path: Path) -> None:
    mamba2 = {"ssm__conv_kernel": 4, "ssm__inner_size": 64, "ssm__state_size": 8, "ssm__group_count": 2}
    state = State(Recurrence.MAMBA, 3 * (64 + 2 * 2 * 8), 64 * 8)
    granite = read(tmp_path, "granitehybrid", attention__head_count_kv=[0, 0, 2, 0, 0, 2], **mamba2)
    assert granite.layers == (state, state, Attention(2, 16, 16)) * 2
    nemotron = read(
        tmp_path,
        "nemotron_h",
        attention__head_count_kv=[0, 0, 2, 0, 0, 2],
        feed_forward_length=[0, 96, 0, 0, 96, 0],
        **mamba2,
    )
    assert nemotron.layers == (state, Attention(2, 16, 16)) * 2
    falcon = read(tmp_path, "falcon-h1", block_count=2, **mamba2)
    assert falcon.layers == (state, Attention(2, 16, 16)) * 2
    delta = State(Recurrence.DELTA, state.convolution, state.recurrent)
    qwen = read(tmp_path, "qwen3next", block_count=9, nextn_predict_layers=1, **mamba2)
    assert qwen.layers == (delta, delta, delta, Attention(2, 16, 16)) * 2
    told = read(tmp_path, "qwen35", attention__recurrent_layers=[0, 1, 1, 0, 1, 1], **mamba2)
    assert told.layers == (Attention(2, 16, 16), delta, delta) * 2
    lfm2 = read(tmp_path, "lfm2", attention__head_count_kv=[0, 2] * 3, shortconv__l_cache=3)
    assert lfm2.layers == (State(Recurrence.CONVOLUTION, 64 * 2, 0), Attention(2, 16, 16)) * 3
    kimi = read(
        tmp_path,
        "kimi-linear",
        attention__head_count_kv=[0, 1] * 3,
        attention__key_length=24,
        attention__value_length=16,
        attention__kv_lora_rank=16,
        attention__key_length_mla=24,
        attention__value_length_mla=16,
        ssm__conv_kernel=4,
        kda__head_dim=8,
    )
    assert kimi.layers == (State(Recurrence.KIMI_DELTA, 3 * 3 * 4 * 8, 4 * 8 * 8), Latent(16, 8)) * 3


@pytest.mark.parametrize(
    ("architecture", "more", "words"),
    [
        ("llama", {"block_count": ...}, "the key block_count is missing"),
        ("llama", {"attention__head_count": ...}, "the key attention.head_count is missing"),
        ("llama", {"embedding_length": ...}, "the key embedding_length is missing"),
        ("llama", {"attention__head_count": 5}, "5 heads do not divide an embedding length of 64"),
        ("llama", {"block_count": 1_000_000}, "1,000,000 layers are more than any model has"),
        ("llama", {"block_count": 6.0}, "block_count is 6.0; expected a whole number"),
        ("llama", {"attention__head_count_kv": [1, 1]}, "attention.head_count_kv has 2 entries for 6 layers"),
        ("llama", {"nextn_predict_layers": 6}, "nextn_predict_layers is 6, as many as there are layers"),
        ("gemma4", {"attention__sliding_window": 9}, "the key attention.sliding_window_pattern is missing"),
        ("jamba", {"attention__head_count_kv": [0, 1] * 3}, "the key ssm.conv_kernel is missing"),
        ("deepseek2", {"attention__key_length_mla": 9}, "the key attention.kv_lora_rank is missing"),
        ("mamba2", {}, "the architecture mamba2 is not known here"),
        ("llama", {"attention__head_count_kv": 0}, "no layer of this model keeps keys and values"),
    ],
)
def test_what_cannot_be_told_is_one_sentence(
    tmp_path: Path, architecture: str, more: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, architecture, **more)
    assert str(caught.value).startswith(str(tmp_path / "model.gguf"))
    assert words in str(caught.value)


def test_damaged_files(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", "llama", BASE)
    whole = path.read_bytes()
    for length in range(4, len(whole) - 40, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="begins as a GGUF file, but ends within its metadata"):
            read_gguf(path)
    path.write_bytes(b"GGUF" + struct.pack(">I", 3) + whole[8:])
    with pytest.raises(InputError, match="of version 50331648; known are 2 and 3, little-endian"):
        read_gguf(path)
    path.write_bytes(whole.replace(b"general.architecture", b"general.architectura"))
    with pytest.raises(InputError, match=r"the key general\.architecture is missing"):
        read_gguf(path)


def test_long_arrays_and_texts_are_passed_over(tiny_model: Path) -> None:
    _, keys = read_metadata(tiny_model)
    assert keys.whole("block_count") == 8
    assert not keys.has("tokenizer.ggml.tokens")


def test_what_is_a_gguf_file(tmp_path: Path, tiny_model: Path) -> None:
    assert is_gguf(tiny_model)
    (tmp_path / "a").write_bytes(b"GGU")
    assert not is_gguf(tmp_path / "a")
    with pytest.raises(InputError, match="there is no such file or folder"):
        is_gguf(tmp_path / "none")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_changed_bytes_are_refused_or_read(tmp_path: Path, data: st.DataObject) -> None:
    """And never anything else, wherever they stand."""
    path = tmp_path / "model.gguf"
    if not path.exists():
        small_models.write_gguf(path, "jamba", BASE | {"attention.head_count_kv": [1] * 6, "x": "text"})
        (tmp_path / "whole").write_bytes(path.read_bytes())
    changed = bytearray((tmp_path / "whole").read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(4, len(changed) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(changed)
    sentence = ""
    try:
        assert isinstance(read_gguf(path), Model)
    except InputError as error:
        sentence = str(error)
    assert "\n" not in sentence
