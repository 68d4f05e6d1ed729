"""The state of a recurrent layer of a Hugging Face model, from config.json."""

from __future__ import annotations

from harness.errors import InputError
from harness.kv_size.keys import Keys, shown
from harness.kv_size.shape import Recurrence, State

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def state(keys: Keys) -> State:
    """Sizes by the formulas of the layers themselves; raises InputError where none of those is known here."""
    told = keys.get("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    told_bytes = _BYTES.get(str(told))
    if keys.has("linear_num_value_heads"):
        return _gated_delta(keys, told_bytes)
    if keys.has("linear_attn_config"):
        return _kimi_delta(keys.below("linear_attn_config"))
    if keys.has("conv_L_cache"):
        length = keys.whole("conv_L_cache")
        return State(Recurrence.CONVOLUTION, keys.whole("hidden_size") * (length - 1), 0)
    if keys.has("mamba_num_heads"):  # Nemotron-H
        inner = keys.whole("mamba_num_heads") * keys.whole("mamba_head_dim")
        groups, numbers, kernel = keys.whole("n_groups"), keys.whole("ssm_state_size"), keys.whole("conv_kernel")
        return _mamba2(inner, groups, numbers, kernel, told_bytes)
    if keys.has("mamba_n_heads"):  # Granite, Bamba, Falcon-H1
        inner = keys.whole("mamba_n_heads") * keys.whole("mamba_d_head")
        groups, numbers, kernel = keys.whole("mamba_n_groups"), keys.whole("mamba_d_state"), keys.whole("mamba_d_conv")
        return _mamba2(inner, groups, numbers, kernel, told_bytes)
    if keys.has("mamba_d_state"):  # Jamba
        inner = keys.whole("mamba_expand") * keys.whole("hidden_size")
        return State(
            Recurrence.MAMBA,
            inner * (keys.whole("mamba_d_conv") - 1),
            inner * keys.whole("mamba_d_state"),
            told_bytes,
        )
    raise InputError(
        f"{keys.place}: it has recurrent layers of a kind that is not known here; "
        f"its model_type is {shown(keys.get('model_type'))}."
    )


def _mamba2(inner: int, groups: int, numbers: int, kernel: int, told_bytes: int | None) -> State:
    """The convolution runs over the inputs and over B and C of each group; the state is `numbers` for each input."""
    return State(Recurrence.MAMBA, (inner + 2 * groups * numbers) * (kernel - 1), inner * numbers, told_bytes)


def _gated_delta(keys: Keys, told_bytes: int | None) -> State:
    """Qwen3-Next: the convolution runs over queries, keys and values; the state is a matrix for each value head."""
    key_size, value_size = keys.whole("linear_key_head_dim"), keys.whole("linear_value_head_dim")
    values = keys.whole("linear_num_value_heads") * value_size
    width = 2 * keys.whole("linear_num_key_heads") * key_size + values
    kernel = keys.whole("linear_conv_kernel_dim")
    return State(Recurrence.DELTA, width * (kernel - 1), values * key_size, told_bytes)


def _kimi_delta(keys: Keys) -> State:
    heads, size, kernel = keys.whole("num_heads"), keys.whole("head_dim"), keys.whole("short_conv_kernel_size")
    return State(Recurrence.KIMI_DELTA, 3 * heads * size * (kernel - 1), heads * size * size)
