"""A Hugging Face model's layers from its config.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.kv_size.config_layers import Kind, kinds, window_is_guessed, window_tokens
from harness.kv_size.config_states import state
from harness.kv_size.keys import Keys, shown
from harness.kv_size.shape import Attention, Latent, Layer, Model

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a model with eyes or ears keeps what is said of its text part."""
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model")
CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma": {"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256},
    "gemma2": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "gemma3_text": {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "sliding_window": 4096},
    "gemma3n_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "sliding_window": 512,
        "num_kv_shared_layers": 15,
    },
    "gemma4_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "global_head_dim": 512,
        "sliding_window": 512,
    },
    "gpt_oss": {"head_dim": 64, "num_key_value_heads": 8, "sliding_window": 128},
    "mistral": {"num_key_value_heads": 8},
    "mixtral": {"num_key_value_heads": 8},
    "qwen3": {"head_dim": 128},
    "qwen3_next": {"head_dim": 256},
}
"""What a type of model has where its config.json leaves it out: Hugging Face writes only what differs from this."""
EXPANDED_BY_MLX_LM = ("deepseek_v2", "minicpm3")
TWO_ATTENTIONS = ("longcat_flash", "longcat_flash_ngram")
"""Types of model whose layers have two attentions each."""
NOT_KNOWN = {
    "compress_ratios": "compressed attention",
    "sparse_attention_config": "sparse attention without latent vectors",
    "block_configs": "layers that differ each from each",
    "block_types": "a mixture of blocks",
    "_block_types": "a mixture of blocks",
}
"""Keys that tell of a cache which is not as any formula here has it."""


def read_config(path: Path) -> Model:
    """The model that a config.json describes. Raises InputError with one sentence if it cannot be told."""
    keys = _text_part(Keys(str(path), _load(path)))
    for name, what in NOT_KNOWN.items():
        if keys.has(name):
            raise InputError(f"{keys.place}: {name} tells of {what}, whose cache is not known here.")
    if keys.get("is_encoder_decoder") is True:
        raise InputError(f"{keys.place}: it is an encoder-decoder, which no formula here is for.")
    layers = keys.layers(*LAYERS)
    of_each = kinds(keys, layers)
    shared = keys.whole("num_kv_shared_layers", default=0, least=0)
    if shared >= layers:
        raise InputError(f"{keys.place}: num_kv_shared_layers is {shared}, as many as there are layers or more.")
    has_latents = keys.has("kv_lora_rank") and keys.get("use_mla") is not False
    build = _latent(keys, layers) if has_latents else _attention(keys, layers)
    found: list[Layer] = []
    for number, kind in enumerate(of_each[: layers - shared]):
        if kind in (Kind.STATE, Kind.BOTH):
            found.append(state(keys))
        if kind not in (Kind.STATE, Kind.NONE):
            found += build(number, kind)
    if not any(isinstance(layer, Attention | Latent) for layer in found):
        raise InputError(f"{path}: no layer of this model keeps keys and values, so it has no KV cache.")
    return Model(str(path), tuple(found), keys.optional(*CONTEXT), tuple(_notes(keys, shared)))


def _load(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise InputError(
            f"{path}: it is neither a GGUF file nor JSON: give a model's config.json or GGUF file."
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}).") from None
    except RecursionError:
        raise InputError(f"{path}: not a config.json, as its values are nested too deeply.") from None
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object, found {shown(value)}.")
    return value


def _text_part(keys: Keys) -> Keys:
    """The part of the file that describes the layers of the language model, with what its type has by default."""
    for name in NESTED:
        if not keys.has(*LAYERS) and keys.has(name):
            return _text_part(keys.below(name))
    defaults = DEFAULTS.get(str(keys.get("model_type")), {})
    return keys.with_defaults(defaults)


Build = Callable[[int, Kind], Iterator[Layer]]


def _latent(keys: Keys, layers: int) -> Build:
    rank, rope = keys.whole("kv_lora_rank"), keys.whole("qk_rope_head_dim")
    expanded = None
    if keys.get("model_type") in EXPANDED_BY_MLX_LM:
        heads, key_size = keys.whole(*HEADS), keys.whole("qk_nope_head_dim") + rope
        value_size = keys.whole("v_head_dim", default=key_size - rope)
        expanded = Attention(heads, key_size, value_size)
    index = keys.optional("index_head_dim") or 0
    indexed = keys.names("indexer_types", layers) if keys.has("indexer_types") else ["full"] * layers
    times = 2 if keys.get("model_type") in TWO_ATTENTIONS else 1

    def build(number: int, kind: Kind) -> Iterator[Layer]:
        if kind in (Kind.WINDOW, Kind.CHUNK):
            raise InputError(f"{keys.place}: MLA with a sliding window is not known here.")
        yield from [Latent(rank, rope, index if indexed[number] == "full" else 0, expanded)] * times

    return build


def _attention(keys: Keys, layers: int) -> Build:
    if keys.has("index_head_dim"):
        raise InputError(f"{keys.place}: index_head_dim tells of sparse attention, which is known here for MLA only.")
    heads = keys.each(layers, *HEADS)
    kv_heads = _kv_heads(keys, layers, heads)

    def build(number: int, kind: Kind) -> Iterator[Layer]:
        count, length = kv_heads[number], None
        if kind is Kind.CHUNK:
            length = keys.whole("attention_chunk_size")
        if kind is Kind.WINDOW:
            keys.whole("sliding_window", "sliding_window_size")
            length = window_tokens(keys)
        key_size = keys.optional("head_dim", "kv_channels") or _divided(keys, heads[number])
        if kind is Kind.WINDOW and keys.has("swa_head_dim"):  # MiMo-V2
            count = keys.whole("swa_num_key_value_heads", default=count)
            key_size = keys.whole("swa_head_dim")
            yield Attention(count, key_size, keys.whole("swa_v_head_dim", default=key_size), length)
            return
        if kind is Kind.FULL and keys.has("global_head_dim"):  # Gemma 4
            key_size = keys.whole("global_head_dim")
            if keys.get("attention_k_eq_v") is True:
                count = keys.whole("num_global_key_value_heads", default=count)
            yield Attention(count, key_size, key_size, length)
            return
        if count:
            yield Attention(count, key_size, keys.whole("v_head_dim", default=key_size), length)

    return build


def _kv_heads(keys: Keys, layers: int, heads: list[int]) -> list[int]:
    """KV heads of each layer: as many as heads where nothing is said (MHA), one where that is said (MQA)."""
    if keys.get("multi_query") is True and keys.get("new_decoder_architecture") is not True:
        return [1] * layers
    if keys.get("multi_query_attention") is True:  # ChatGLM
        return [keys.whole("multi_query_group_num")] * layers
    if isinstance(keys.get("attn_config"), dict) and keys.below("attn_config").has("kv_n_heads"):  # DBRX
        return [keys.below("attn_config").whole("kv_n_heads")] * layers
    names = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
    return keys.each(layers, *names) if keys.has(*names) else heads


def _divided(keys: Keys, heads: int) -> int:
    hidden = keys.whole(*HIDDEN)
    if heads < 1 or hidden % heads:
        raise InputError(
            f"{keys.place}: the key head_dim is missing, and {heads} heads do not divide a hidden size of {hidden}."
        )
    return hidden // heads


def _notes(keys: Keys, shared: int) -> Iterator[str]:
    if shared:
        yield f"The last {shared} layers use keys and values of earlier ones and keep none."
    if window_is_guessed(keys):
        yield (
            f"The file names a window of {window_tokens(keys):,} tokens, and not for which layers: it is taken for all."
        )
