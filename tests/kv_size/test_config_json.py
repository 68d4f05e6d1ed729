"""Layers of real models from their config.json: the figures are worked out by hand in real_models.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.kv_size.config_json import read_config
from harness.kv_size.engines import engines
from harness.kv_size.holding import size
from harness.kv_size.shape import Attention, Latent, Model, State
from tests.kv_size.real_models import MODELS, Real, plain

SGLANG = next(one for one in engines() if one.name == "sglang")


def read(folder: Path, config: dict[str, Any]) -> Model:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return read_config(path)


@pytest.mark.parametrize("real", MODELS.values(), ids=MODELS)
def test_a_token_of_a_real_model(tmp_path: Path, real: Real) -> None:
    found = size(SGLANG, SGLANG.types[0], read(tmp_path, real.config))
    assert (found.per_token, found.per_token_past_windows, found.per_session) == (real.grows, real.past, real.state)


def test_qwen3_8b_at_32768_tokens(tmp_path: Path) -> None:
    found = size(SGLANG, SGLANG.types[0], read(tmp_path, MODELS["Qwen3-8B"].config))
    assert found.bytes_at(32_768) == 4_831_838_208  # 4.83 GB


def test_gemma_3_27b_at_32768_tokens(tmp_path: Path) -> None:
    """10 layers with all tokens, 52 with 1,024 of them, 8,192 bytes each."""
    found = size(SGLANG, SGLANG.types[0], read(tmp_path, MODELS["Gemma-3-27B"].config))
    assert found.bytes_at(32_768) == 8_192 * (10 * 32_768 + 52 * 1_024)


def test_layers_stay_in_order(tmp_path: Path) -> None:
    layers = read(tmp_path, MODELS["Jamba-v0.1"].config).layers
    assert [number for number, layer in enumerate(layers) if isinstance(layer, Attention)] == [4, 12, 20, 28]
    assert [isinstance(layer, State) for layer in read(tmp_path, MODELS["Falcon-H1-7B"].config).layers[:4]] == [
        True,
        False,
        True,
        False,
    ]
    windows = [
        layer.window for layer in read(tmp_path, MODELS["Gemma-2-9B"].config).layers[:3] if isinstance(layer, Attention)
    ]
    assert windows == [4096, None, 4096]


@pytest.mark.parametrize(
    ("more", "windows"),
    [
        ({"sliding_window": None}, [None] * 6),
        ({"sliding_window": 100, "use_sliding_window": False}, [None] * 6),
        ({"sliding_window": 100, "sliding_window_pattern": 3}, [100, 100, None, 100, 100, None]),
        ({"sliding_window": 100, "_sliding_window_pattern": 2}, [100, None, 100, None, 100, None]),
        ({"sliding_window": 100, "sliding_window_pattern": "LLG"}, [100, 100, None, 100, 100, None]),
        ({"sliding_window": 100, "use_sliding_window": True, "max_window_layers": 4}, [None] * 4 + [100] * 2),
        ({"sliding_window": 100, "max_position_embeddings": 100}, [None] * 6),
        ({"sliding_window": 100, "layer_types": ["sliding_attention"] + ["full_attention"] * 5}, [100] + [None] * 5),
        ({"attention_chunk_size": 64, "no_rope_layer_interval": 3}, [64, 64, None, 64, 64, None]),
    ],
)
def test_which_layers_have_a_window(tmp_path: Path, more: dict[str, Any], windows: list[int | None]) -> None:
    layers = read(tmp_path, plain("other", 6, 4, 2, 64, **more)).layers
    assert [layer.window for layer in layers if isinstance(layer, Attention)] == windows


def test_a_window_of_unknown_layers_is_taken_for_all_and_said_so(tmp_path: Path) -> None:
    model = read(tmp_path, plain("other", 6, 4, 2, 64, sliding_window=100))
    assert model.windows == {100}
    assert any("not for which layers" in note for note in model.notes)
    assert not read(tmp_path, MODELS["Mistral-7B-v0.1"].config).notes


def test_kv_heads_may_differ_by_layer(tmp_path: Path) -> None:
    config = plain("other", 3, 4, 2, 64) | {"num_key_value_heads": [4, 0, 1]}
    assert [layer.kv_heads for layer in read(tmp_path, config).layers if isinstance(layer, Attention)] == [4, 1]


def test_other_ways_to_say_it(tmp_path: Path) -> None:
    glm = {"num_layers": 2, "num_attention_heads": 32, "hidden_size": 4096, "kv_channels": 128}
    glm |= {"multi_query_attention": True, "multi_query_group_num": 2}
    assert read(tmp_path, glm).kinds() == {Attention(2, 128, 128): 2}
    dbrx = {"n_layers": 2, "n_heads": 8, "d_model": 64, "attn_config": {"kv_n_heads": 4}}
    assert read(tmp_path, dbrx).kinds() == {Attention(4, 8, 8): 2}
    bamba = plain("bamba", 2, 4, 2, 64, attn_layer_indices=[1], mamba_n_heads=2, mamba_d_head=8)
    bamba |= {"mamba_n_groups": 1, "mamba_d_state": 4, "mamba_d_conv": 4}
    assert [type(layer) for layer in read(tmp_path, bamba).layers] == [State, Attention]
    longcat = plain("longcat_flash", 3, 4, 4, 64, kv_lora_rank=16, qk_rope_head_dim=8)
    assert read(tmp_path, longcat).kinds() == {Latent(16, 8): 6}
    omni = {"thinker_config": {"text_config": plain("qwen2_5_omni_text", 2, 4, 2, 64)}}
    assert read(tmp_path, omni).kinds() == {Attention(2, 16, 16): 2}


def test_index_keys_may_be_shared_by_layers(tmp_path: Path) -> None:
    config = plain("glm_moe_dsa", 2, 4, 4, 64, kv_lora_rank=16, qk_rope_head_dim=8, index_head_dim=128)
    layers = read(tmp_path, config | {"indexer_types": ["full", "shared"]}).layers
    assert layers == (Latent(16, 8, 128), Latent(16, 8, 0))


def test_the_file_tells_how_wide_a_state_is(tmp_path: Path) -> None:
    wide = MODELS["Qwen3-Next-80B"].config | {"mamba_ssm_dtype": "bfloat16"}
    found = size(SGLANG, SGLANG.types[0], read(tmp_path, wide))
    assert found.per_session == 36 * (8_192 * 3 * 2 + 524_288 * 2)


def test_longest_sequence(tmp_path: Path) -> None:
    assert read(tmp_path, plain("llama", 2, 4, 2, 64, max_position_embeddings=8192)).context_tokens == 8192
    assert read(tmp_path, plain("llama", 2, 4, 2, 64)).context_tokens is None
