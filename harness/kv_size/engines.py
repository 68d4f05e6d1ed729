"""The four engines and every number format that they offer for their KV caches.

The lists are those of vLLM 0.33, SGLang 0.5.23, llama.cpp of October 2026 and mlx-lm 0.32; the sizes are those of their
sources. Types of vLLM that only one kind of model can be kept in, in a layout of its own, are not here (nvfp4_ds_mla).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.errors import InputError
from harness.kv_size.engine import Engine, Latents, StorageType
from harness.kv_size.format import PLAIN, Format
from harness.kv_size.shape import Recurrence

GROUP_SIZES = (32, 64, 128)
"""Of mlx-lm's --kv-group-size."""

SCALED_INDEX = Format(8, block=128, block_bytes=4)
"""vLLM and SGLang keep index keys in fp8 with a float32 scale, whatever the type of the cache."""
_FLOAT8 = Format(8)
_NVFP4 = Format(4, block=16, block_bytes=1)


def _same(name: str, packing: Format, **more: Any) -> StorageType:
    return StorageType(name, packing, packing, **more)


def _vllm() -> Engine:
    joined = {"latents": Latents.JOINED, "sparse_latents": Latents.JOINED}
    eight = {"latents": Latents.JOINED, "sparse_latents": Latents.SCALED}
    types = [_same(name, PLAIN, **joined) for name in ("bfloat16", "float16")]
    types += [_same(name, _FLOAT8, **eight) for name in ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")]
    types += [_same("fp8_ds_mla", _FLOAT8, latents=Latents.SCALED, sparse_latents=Latents.SCALED, heads=False)]
    for name, bits in (("int8_per_token_head", 8), ("fp8_per_token_head", 8), ("int4_per_token_head", 4)):
        types.append(_same(name, Format(bits, vector_bytes=4)))
    types += [_same(name, _NVFP4) for name in ("nvfp4", "nvfp4_4over6")]
    types.append(_same("ultraquant_4bit", Format(4, block=32, block_bytes=1)))
    for name, key_bits, value_bits in (("k8v4", 8, 4), ("4bit_nc", 4, 4), ("k3v4_nc", 3, 4), ("3bit_nc", 3, 3)):
        keys = _FLOAT8 if key_bits == 8 else Format(key_bits, vector_bytes=2)
        values = Format(value_bits, vector_bytes=4)
        types.append(StorageType(f"turboquant_{name}", keys, values, slot_multiple=2, plain_ends=2))
    # Keys of Octave have a scale for each 64 numbers, and 4 bits instead of 3 for the 64 with the position.
    octave: dict[str, Any] = {"windows": False, "head_size": 256}
    keys = Format(3, vector_bytes=4 * 2 + 64 // 8)
    for bits in (4, 3):
        types.append(StorageType(f"octave_k3v{bits}", keys, Format(bits, vector_bytes=2), slot_multiple=8, **octave))
    types.append(_same("octave_k3v3_compact", Format(3, vector_bytes=2), slot_multiple=4, **octave))
    return Engine(
        "vllm",
        "vLLM",
        "--kv-cache-dtype",
        tuple(types),
        index_keys=SCALED_INDEX,
        wide_states=frozenset([Recurrence.KIMI_DELTA]),
        reads_state_width=True,
    )


def _sglang() -> Engine:
    joined = {"latents": Latents.JOINED, "sparse_latents": Latents.JOINED}
    types = [_same(name, PLAIN, **joined) for name in ("bfloat16", "bf16")]
    for name in ("fp8_e4m3", "fp8_e5m2"):
        types.append(_same(name, _FLOAT8, latents=Latents.JOINED, sparse_latents=Latents.SCALED))
    types.append(_same("mxfp8", Format(8, block=32, block_bytes=1)))
    types += [_same(name, _NVFP4, latents=Latents.JOINED) for name in ("nvfp4", "fp4_mx_block16")]
    return Engine(
        "sglang",
        "SGLang",
        "--kv-cache-dtype",
        tuple(types),
        index_keys=SCALED_INDEX,
        wide_states=frozenset(Recurrence),
        reads_state_width=True,
    )


def _llama_cpp() -> Engine:
    packings = {"f32": Format(32), "f16": PLAIN, "bf16": PLAIN}
    for name, bits, scales in (("q8_0", 8, 2), ("q5_1", 5, 4), ("q5_0", 5, 2), ("q4_1", 4, 4), ("q4_0", 4, 2)):
        packings[name] = Format(bits, block=32, block_bytes=scales)
    packings["iq4_nl"] = packings["q4_0"]
    joined = {"latents": Latents.JOINED, "sparse_latents": Latents.JOINED}
    types = tuple(_same(name, packing, **joined) for name, packing in packings.items())
    flag = "--cache-type-k and --cache-type-v"
    return Engine("llama-cpp", "llama.cpp", flag, types, convolution_bytes=4, wide_states=frozenset(Recurrence))


def _mlx_lm(group_size: int) -> Engine:
    types = [_same("16bit", PLAIN, latents=Latents.APART, sparse_latents=Latents.APART)]
    for bits in (8, 6, 5, 4, 3, 2):
        packing = Format(bits, block=group_size, block_bytes=4, in_words=True)
        types.append(_same(f"{bits}bit", packing, latents=Latents.APART, windows=False))
    delta = frozenset([Recurrence.DELTA, Recurrence.KIMI_DELTA])
    flag = f"--kv-bits, --kv-group-size {group_size}"
    return Engine("mlx-lm", "mlx-lm", flag, tuple(types), expands_some_latents=True, wide_states=delta)


def engines(group_size: int = 64) -> tuple[Engine, ...]:
    """All four. Raises InputError for a group size that mlx-lm does not have."""
    if group_size not in GROUP_SIZES:
        known = ", ".join(map(str, GROUP_SIZES))
        raise InputError(f"--group-size {group_size} is not one of mlx-lm's: give one of {known}.")
    return (_vllm(), _sglang(), _llama_cpp(), _mlx_lm(group_size))


def mixed(keys: StorageType, values: StorageType) -> StorageType:
    """llama.cpp's cache with keys of one type and values of another."""
    return replace(keys, name=f"{keys.name} / {values.name}", values=values.values)
