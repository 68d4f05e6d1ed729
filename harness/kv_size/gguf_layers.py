"""A model's layers from its GGUF file, as llama.cpp takes them (October 2026)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError
from harness.kv_size.gguf_file import read_metadata
from harness.kv_size.keys import Keys
from harness.kv_size.shape import Attention, Latent, Layer, Model, Recurrence, State

PERIODS = {
    "afmoe": 4,
    "cohere2": 4,
    "cohere2moe": 4,
    "exaone-moe": 4,
    "exaone4": 4,
    "gemma2": 2,
    "gemma3": 6,
    "gemma3n": 5,
    "gpt-oss": 2,
    "laguna": 4,
    "lfm2": 0,
    "llama4": 4,
    "mellum": 4,
    "olmo2": 4,
    "plamo3": 8,
    "smallthinker": 4,
}
"""Architectures with windows: every so many layers one has full attention (0: none has), if the file does not say."""
FULL_FIRST = ("cohere2moe", "laguna", "smallthinker")
"""The first of such layers has full attention, not the last one."""
LISTED = ("gemma4", "mimo2", "step35")
"""Architectures with windows whose files say of each layer whether it has one."""
WINDOWS = {"exaone-moe": 128, "exaone4": 4096, "gemma2": 4096, "llama4": 8192, "smallthinker": 4096}
"""Tokens of a window, if the file does not say."""
INTERVALS = ("qwen3next", "qwen35", "qwen35moe")
"""Hybrids with full attention in every fourth layer, or as the file says."""
HYBRIDS = ("barbet", "granitehybrid", "jamba", "kimi-linear", "lfm2", "lfm2moe", "plamo2")
"""Hybrids whose recurrent layers have no KV heads."""
WITHOUT_MLP = ("nemotron_h", "nemotron_h_moe")
"""The same, but layers that have a feed-forward part are that alone."""
TRUNK_ONLY = ("deepseek32", "glm-dsa", "hy-v3", "mimo2", "qwen35", "qwen35moe", "qwen3next", "step35")
"""Architectures whose layers for speculation have no room in the cache of the model itself."""
NOT_KNOWN = ("deepseek4", "dflash", "minimax-m3", "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7", "t5")
GEMMA3N_LAYERS = 20
"""Layers of Gemma 3n with a cache of their own; the file does not say."""


def read_gguf(path: Path) -> Model:
    """The model in a GGUF file. Raises InputError with one sentence if its cache cannot be told."""
    architecture, keys = read_metadata(path)
    if architecture in NOT_KNOWN:
        raise InputError(f"{path}: the cache of the architecture {architecture} is not known here.")
    layers = keys.layers("block_count")
    extra = keys.whole("nextn_predict_layers", default=0, least=0)
    if extra >= layers:
        raise InputError(f"{path}: nextn_predict_layers is {extra}, as many as there are layers or more.")
    trunk = layers - extra if architecture in TRUNK_ONLY else layers
    shared = keys.whole("attention.shared_kv_layers", default=0, least=0)
    if architecture == "gemma3n":
        shared = max(0, layers - GEMMA3N_LAYERS)
    recurrent, attention = _recurrent(architecture, keys, layers), _attention(architecture, keys, layers)
    found: list[Layer] = []
    for number in range(trunk):
        if recurrent[number] or architecture == "falcon-h1":
            found.append(_state(architecture, keys, layers))
        if not recurrent[number] and number < layers - shared:
            found += attention[number]
    if not any(isinstance(layer, Attention | Latent) for layer in found):
        raise InputError(f"{path}: no layer of this model keeps keys and values, so it has no KV cache.")
    return Model(str(path), tuple(found), keys.optional("context_length"), tuple(_notes(architecture, keys, shared)))


def _recurrent(architecture: str, keys: Keys, layers: int) -> list[bool]:
    kv_heads = _kv_heads(keys, layers)
    if architecture in INTERVALS:
        if keys.has("attention.recurrent_layers"):
            return [bool(one) for one in keys.each(layers, "attention.recurrent_layers")]
        interval = keys.whole("full_attention_interval", default=4)
        return [(number + 1) % interval != 0 for number in range(layers)]
    if architecture in WITHOUT_MLP:
        wide = keys.each(layers, "feed_forward_length")
        return [not heads and not width for heads, width in zip(kv_heads, wide, strict=True)]
    return [architecture in HYBRIDS and not heads for heads in kv_heads]


def _kv_heads(keys: Keys, layers: int) -> list[int]:
    heads = keys.each(layers, "attention.head_count")
    return keys.each(layers, "attention.head_count_kv") if keys.has("attention.head_count_kv") else heads


def _attention(architecture: str, keys: Keys, layers: int) -> list[list[Layer]]:
    """What each layer keeps if it is not recurrent: one thing, or nothing without KV heads."""
    kv_heads, windows = _kv_heads(keys, layers), _windows(architecture, keys, layers)
    heads = max(keys.each(layers, "attention.head_count"))
    size = keys.optional("attention.key_length") or _divided(keys, heads)
    value_size = keys.optional("attention.value_length") or _divided(keys, heads)
    if keys.has("attention.key_length_mla"):
        rank = keys.whole("attention.kv_lora_rank")
        if size <= rank:
            raise InputError(f"{keys.place}: attention.key_length is {size}, not more than attention.kv_lora_rank.")
        index = keys.optional("attention.indexer.key_length") or 0
        indexed = [1] * layers
        if keys.has("attention.indexer.types"):
            indexed = keys.each(layers, "attention.indexer.types")
        return [
            [Latent(rank, size - rank, index if with_index else 0)] if count else []
            for count, with_index in zip(kv_heads, indexed, strict=True)
        ]
    found: list[list[Layer]] = []
    for count, window in zip(kv_heads, windows, strict=True):
        if window is None:
            one = Attention(count, size, value_size)
        else:
            key_size = keys.whole("attention.key_length_swa", default=size)
            one = Attention(count, key_size, keys.whole("attention.value_length_swa", default=value_size), window)
        found.append([one] if count else [])
    return found


def _divided(keys: Keys, heads: int) -> int:
    hidden = keys.whole("embedding_length")
    if heads < 1 or hidden % heads:
        raise InputError(
            f"{keys.place}: attention.key_length and value_length are missing, "
            f"and {heads} heads do not divide an embedding length of {hidden}."
        )
    return hidden // heads


def _windows(architecture: str, keys: Keys, layers: int) -> list[int | None]:
    window = keys.optional("attention.sliding_window") or WINDOWS.get(architecture)
    if window is None or architecture not in (*PERIODS, *LISTED):
        return [None] * layers
    pattern = keys.get("attention.sliding_window_pattern")
    if isinstance(pattern, list) or architecture in LISTED:
        return [window if one else None for one in keys.each(layers, "attention.sliding_window_pattern")]
    period = keys.whole("attention.sliding_window_pattern", default=PERIODS[architecture], least=0)
    if period == 0:
        return [window] * layers
    full = 0 if architecture in FULL_FIRST else period - 1
    return [None if number % period == full else window for number in range(layers)]


def _state(architecture: str, keys: Keys, layers: int) -> State:
    if keys.has("shortconv.l_cache"):
        length = keys.whole("shortconv.l_cache")
        return State(Recurrence.CONVOLUTION, keys.whole("embedding_length") * (length - 1), 0)
    kernel = keys.whole("ssm.conv_kernel")
    if keys.has("kda.head_dim"):
        heads, size = max(keys.each(layers, "attention.head_count")), keys.whole("kda.head_dim")
        return State(Recurrence.KIMI_DELTA, 3 * heads * size * (kernel - 1), heads * size * size)
    inner, size = keys.whole("ssm.inner_size"), keys.whole("ssm.state_size")
    groups = keys.whole("ssm.group_count", default=0, least=0)
    kind = Recurrence.DELTA if architecture in INTERVALS else Recurrence.MAMBA
    return State(kind, (inner + 2 * groups * size) * (kernel - 1), inner * size)


def _notes(architecture: str, keys: Keys, shared: int) -> Iterator[str]:
    if shared:
        yield f"The last {shared} layers use keys and values of earlier ones and keep none."
    window = keys.optional("attention.sliding_window")
    if window is not None and architecture not in (*PERIODS, *LISTED):
        yield f"The file names a window of {window:,} tokens, of which llama.cpp makes no use with this architecture."
