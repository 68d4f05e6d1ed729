"""Which layer of a Hugging Face model is of which kind, from the ways in which config.json tells it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from harness.errors import InputError
from harness.kv_size.keys import Keys, shown


class Kind(Enum):
    FULL = "full"
    WINDOW = "window"
    CHUNK = "chunk"
    STATE = "state"
    BOTH = "both"
    """Attention and a recurrent state side by side."""
    NONE = "none"
    """Neither, such as a layer that is an MLP alone."""


NAMES = {
    "full_attention": Kind.FULL,
    "attention": Kind.FULL,
    "sliding_attention": Kind.WINDOW,
    "chunked_attention": Kind.CHUNK,
    "linear_attention": Kind.STATE,
    "mamba": Kind.STATE,
    "mamba2": Kind.STATE,
    "conv": Kind.STATE,
    "mlp": Kind.NONE,
    "moe": Kind.NONE,
}
"""Of `layer_types` and `layers_block_type`."""
LETTERS = {"M": Kind.STATE, "*": Kind.FULL, "-": Kind.NONE, "E": Kind.NONE}
"""Of Nemotron-H's `hybrid_override_pattern`."""
PERIODS = {"gemma2": 2, "gemma3_text": 6, "gemma4_text": 6, "cohere2": 4, "exaone4": 4, "gpt_oss": 2}
"""Every so many layers one has full attention, the others a window, where a model of this type does not say."""
RECURRENT = ("mamba_", "ssm_", "linear_", "lightning_", "attn_type_list", "conv_L_cache")
"""What the names of keys begin with that only models with recurrent layers have."""
PATTERN = ("sliding_window_pattern", "_sliding_window_pattern")
WINDOW_EVERYWHERE = ("mistral", "mixtral", "phi3", "phimoe", "starcoder2")
"""Types of model whose window is that of all layers."""


def kinds(keys: Keys, layers: int) -> list[Kind]:
    """The kind of each layer. Raises InputError for kinds that are not known here."""
    if keys.has("hybrid_override_pattern"):
        letters = keys.names("hybrid_override_pattern", layers)
        return [_known(keys, "hybrid_override_pattern", letter, LETTERS) for letter in letters]
    for name in ("layer_types", "layers_block_type"):
        if keys.has(name):
            return [_known(keys, name, one, NAMES) for one in keys.names(name, layers)]
    if keys.has("linear_attn_config"):
        full = keys.below("linear_attn_config").numbers("full_attn_layers")
        return _full_at(layers, (number - 1 for number in full), Kind.STATE)
    for name in ("attn_layer_indices", "full_attn_idxs"):
        if keys.has(name):
            return _full_at(layers, keys.numbers(name), Kind.STATE)
    if keys.has("attn_layer_period"):
        period, offset = keys.whole("attn_layer_period"), keys.whole("attn_layer_offset", least=0)
        return _full_at(layers, range(offset, layers, period), Kind.STATE)
    if keys.has("linear_num_value_heads"):
        period = keys.whole("full_attention_interval", default=4)
        return _full_at(layers, range(period - 1, layers, period), Kind.STATE)
    if keys.has("hybrid_layer_pattern"):
        windows = keys.each(layers, "hybrid_layer_pattern")
        return [Kind.WINDOW if window else Kind.FULL for window in windows]
    if keys.get("model_type") == "falcon_h1":
        return [Kind.BOTH] * layers
    recurrent = keys.beginning(RECURRENT)
    if recurrent is not None:
        raise InputError(
            f"{keys.place}: {shown(recurrent)} tells of recurrent layers, and nothing known here tells which those are."
        )
    if keys.has("no_rope_layers", "attention_chunk_size"):
        return _chunks(keys, layers)
    return _windows(keys, layers)


def window_is_guessed(keys: Keys) -> bool:
    """Whether the file names a window, and not for which layers."""
    told = keys.has("layer_types", "hybrid_layer_pattern", "max_window_layers", *PATTERN)
    told = told or keys.get("model_type") in (*PERIODS, *WINDOW_EVERYWHERE)
    return window_tokens(keys) is not None and not told


def window_tokens(keys: Keys) -> int | None:
    """Length of its sliding window in tokens; None: it has none, or one as long as the longest sequence."""
    window = keys.optional("sliding_window", "sliding_window_size")
    by_default = not str(keys.get("model_type")).startswith("qwen")
    used = keys.get("use_sliding_window") if keys.has("use_sliding_window") else by_default
    context = keys.optional("max_position_embeddings")
    if window is None or used is False or (context is not None and window >= context):
        return None
    return window


def _windows(keys: Keys, layers: int) -> list[Kind]:
    if window_tokens(keys) is None:
        return [Kind.FULL] * layers
    pattern = keys.get(*PATTERN)
    if isinstance(pattern, str):  # EXAONE 4: L is local, G is global
        if not pattern or set(pattern) - set("LG"):
            raise InputError(f"{keys.place}: {PATTERN[0]} is {shown(pattern)}; expected letters L and G, or a number.")
        return [Kind.FULL if pattern[number % len(pattern)] == "G" else Kind.WINDOW for number in range(layers)]
    period = keys.whole(*PATTERN, default=PERIODS.get(str(keys.get("model_type")), 0))
    if period:
        return _full_at(layers, range(period - 1, layers, period), Kind.WINDOW)
    first = keys.whole("max_window_layers", default=0, least=0)
    return [Kind.FULL] * min(first, layers) + [Kind.WINDOW] * max(0, layers - first)


def _chunks(keys: Keys, layers: int) -> list[Kind]:
    """Llama 4: layers with rotary positions attend within chunks; of four layers the last one has none."""
    if keys.get("no_rope_layers"):
        return [Kind.CHUNK if rotary else Kind.FULL for rotary in keys.each(layers, "no_rope_layers")]
    period = keys.whole("no_rope_layer_interval", default=4)
    return _full_at(layers, range(period - 1, layers, period), Kind.CHUNK)


def _full_at(layers: int, full: Iterable[int], others: Kind) -> list[Kind]:
    places = set(full)
    return [Kind.FULL if number in places else others for number in range(layers)]


def _known(keys: Keys, name: str, value: str, known: dict[str, Kind]) -> Kind:
    if value in known:
        return known[value]
    raise InputError(
        f"{keys.place}: {name} has layers of a kind {shown(value)}, whose cache is not known here "
        f"(known are {', '.join(known)})."
    )
