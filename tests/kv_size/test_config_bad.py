"""A config.json that cannot be used is told in one sentence, which names the file and the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.kv_size.config_json import read_config
from harness.kv_size.shape import Model
from tests.kv_size.real_models import MODELS, plain

GOOD = plain("llama", 4, 4, 2, 64)
JAMBA = MODELS["Jamba-v0.1"].config


def without(name: str, config: dict[str, Any] = GOOD) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != name}


BAD = {
    "no layers": (
        without("num_hidden_layers"),
        "the key num_hidden_layers (or n_layer, n_layers, num_layers) is missing",
    ),
    "no heads": (without("num_attention_heads"), "the key num_attention_heads (or n_head, n_heads) is missing"),
    "no size": (without("hidden_size"), "the key hidden_size (or n_embd, d_model) is missing"),
    "null": (GOOD | {"num_hidden_layers": None}, "the key num_hidden_layers"),
    "negative": (GOOD | {"num_key_value_heads": -2}, "num_key_value_heads is -2; expected a whole number, 0 or more"),
    "zero": (GOOD | {"num_hidden_layers": 0}, "num_hidden_layers is 0; expected a whole number, 1 or more"),
    "fraction": (GOOD | {"hidden_size": 64.5}, "hidden_size is 64.5"),
    "truth": (GOOD | {"num_hidden_layers": True}, "num_hidden_layers is true"),
    "text": (GOOD | {"num_attention_heads": "4"}, 'num_attention_heads is "4"'),
    "endless": (GOOD | {"num_hidden_layers": 10**12}, "1,000,000,000,000 layers are more than any model has"),
    "uneven": (GOOD | {"num_attention_heads": 7}, "7 heads do not divide a hidden size of 64"),
    "short list": (GOOD | {"num_key_value_heads": [2, 2]}, "num_key_value_heads has 2 entries for 4 layers"),
    "list of texts": (GOOD | {"num_key_value_heads": ["2"] * 4}, 'num_key_value_heads is "2"'),
    "kinds too few": (GOOD | {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 4 layers"),
    "kinds of no kind": (GOOD | {"layer_types": 7}, "layer_types is 7; expected a text for each layer"),
    "unknown kind": (
        GOOD | {"layer_types": ["full_attention"] * 3 + ["quantum_attention"]},
        'a kind "quantum_attention", whose cache is not known here',
    ),
    "unknown letter": (GOOD | {"hybrid_override_pattern": "M*-Z"}, 'a kind "Z"'),
    "no window": (GOOD | {"layer_types": ["sliding_attention"] * 4}, "the key sliding_window (or sliding_window_size)"),
    "pattern": (GOOD | {"sliding_window": 8, "sliding_window_pattern": "LXG"}, "expected letters L and G"),
    "no chunk": (GOOD | {"layer_types": ["chunked_attention"] * 4}, "the key attention_chunk_size is missing"),
    "no state": (GOOD | {"layer_types": ["mamba"] * 4}, "recurrent layers of a kind that is not known here"),
    "hidden states": (GOOD | {"mamba_d_state": 16}, '"mamba_d_state" tells of recurrent layers'),
    "half a state": (without("mamba_d_conv", JAMBA), "the key mamba_d_conv is missing"),
    "no attention": (JAMBA | {"attn_layer_offset": 99}, "no layer of this model keeps keys and values"),
    "compressed": (GOOD | {"compress_ratios": [0, 4]}, "compress_ratios tells of compressed attention"),
    "sparse": (GOOD | {"index_head_dim": 128}, "index_head_dim tells of sparse attention"),
    "blocks": (GOOD | {"block_configs": []}, "block_configs tells of layers that differ"),
    "encoder-decoder": (GOOD | {"is_encoder_decoder": True}, "it is an encoder-decoder"),
    "all shared": (GOOD | {"num_kv_shared_layers": 4}, "num_kv_shared_layers is 4, as many as there are layers"),
    "half of MLA": (GOOD | {"kv_lora_rank": 512}, "the key qk_rope_head_dim is missing"),
    "nested": ({"text_config": without("num_attention_heads")}, "text_config: the key num_attention_heads"),
    "nested in nothing": ({"text_config": 3}, "text_config is 3; expected an object"),
    "linear": (
        GOOD | {"linear_attn_config": {"full_attn_layers": "all"}},
        'full_attn_layers is "all"; expected a list',
    ),
}


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert caught.value.exit_code == 2
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(("config", "words"), BAD.values(), ids=BAD)
def test_a_bad_config_is_one_sentence(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert words in refusal(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: not valid JSON"),
        (b'{\n"a": 1,\n', "line 3: not valid JSON"),
        (b"[1, 2]", "expected a JSON object, found [1, 2]"),
        (bytes(range(256)), "neither a GGUF file nor JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"n_layer": ' + b"9" * 5000 + b"}", "not valid JSON"),
    ],
    ids=["empty", "cut off", "list", "junk", "deep", "long number"],
)
def test_what_is_no_config(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    assert words in refusal(path)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 40) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([real.config for real in MODELS.values()]), st.data())
def test_junk_in_a_config_is_refused_or_read(tmp_path: Path, config: dict[str, Any], data: st.DataObject) -> None:
    """And never anything else, whatever stands at whichever key."""
    changed = json.loads(json.dumps(config))
    inner = changed.get("text_config", changed)
    for _ in range(data.draw(st.integers(1, 3))):
        inner[data.draw(st.sampled_from(sorted(inner)))] = data.draw(JUNK)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(changed))
    sentence = ""
    try:
        assert isinstance(read_config(path), Model)
    except InputError as error:
        sentence = str(error)
    assert "\n" not in sentence
