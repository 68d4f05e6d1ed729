"""GGUF files of small models of several kinds, whose weights are zeros: only what llama.cpp keeps of them is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from harness.embedded.tiny_tokenizer import SPECIAL_TOKENS, train
from harness.workload.words import CANDIDATES

HIDDEN = 64
WIDE = 64
"""Inner width of the feed-forward part."""

Shapes = dict[str, tuple[int, ...]]
"""Tensors and their shapes, columns first, as llama.cpp has them."""


def write_gguf(path: Path, architecture: str, metadata: dict[str, Any], shapes: Shapes | None = None) -> Path:
    """A file with these keys, `{arch}.` left out; with a vocabulary and tensors if it is to be loaded."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        _add(writer, f"{architecture}.{key}", value)
    if shapes is not None:
        vocabulary = train(CANDIDATES)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(vocabulary.tokens)
        kinds = [
            gguf.TokenType.CONTROL if one in SPECIAL_TOKENS else gguf.TokenType.NORMAL for one in vocabulary.tokens
        ]
        writer.add_token_types(kinds)
        writer.add_token_merges([" ".join(pair) for pair in vocabulary.merges])
        for name, shape in {**shapes, "token_embd.weight": (HIDDEN, len(vocabulary.tokens))}.items():
            writer.add_tensor(name, np.zeros(shape[::-1], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_uint32(key, value)


def _common(layers: int) -> dict[str, Any]:
    return {
        "context_length": 4096,
        "embedding_length": HIDDEN,
        "block_count": layers,
        "feed_forward_length": WIDE,
        "attention.head_count": 2,
        "attention.layer_norm_rms_epsilon": 1e-6,
    }


def _feed_forward(layer: int) -> Shapes:
    start = f"blk.{layer}.ffn_"
    shapes: Shapes = {f"{start}gate.weight": (HIDDEN, WIDE), f"{start}up.weight": (HIDDEN, WIDE)}
    return shapes | {f"{start}down.weight": (WIDE, HIDDEN), f"{start}norm.weight": (HIDDEN,)}


def _heads(layer: int, queries: int, keys: int) -> Shapes:
    start = f"blk.{layer}.attn_"
    shapes: Shapes = {f"{start}norm.weight": (HIDDEN,), f"{start}q.weight": (HIDDEN, queries)}
    shapes |= {f"{start}{name}.weight": (HIDDEN, keys) for name in "kv"}
    return shapes | {f"{start}output.weight": (queries, HIDDEN)}


def gemma3(path: Path) -> Path:
    """12 layers, of which every sixth has full attention and the others a window of 512 tokens; 1 KV head of 32."""
    metadata = _common(12) | {
        "attention.head_count_kv": 1,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 512,
    }
    shapes: Shapes = {"output_norm.weight": (HIDDEN,)}
    for layer in range(12):
        shapes |= _feed_forward(layer) | _heads(layer, 2 * 32, 32)
        shapes |= {f"blk.{layer}.attn_{name}_norm.weight": (32,) for name in "qk"}
        shapes |= {f"blk.{layer}.post_{name}.weight": (HIDDEN,) for name in ("attention_norm", "ffw_norm")}
    return write_gguf(path, "gemma3", metadata, shapes)


def deepseek2(path: Path) -> Path:
    """2 layers of MLA: latent vectors of 64 numbers and 32 for the position, for heads of 32 + 32."""
    metadata = _common(2) | {
        "attention.head_count_kv": 1,
        "attention.key_length": 96,
        "attention.value_length": 64,
        "attention.key_length_mla": 64,
        "attention.value_length_mla": 32,
        "attention.kv_lora_rank": 64,
        "attention.q_lora_rank": 32,
        "rope.dimension_count": 32,
        "leading_dense_block_count": 2,
        "expert_feed_forward_length": 32,
        "expert_shared_count": 1,
        "expert_count": 2,
        "expert_used_count": 1,
    }
    shapes: Shapes = {"output_norm.weight": (HIDDEN,)}
    for layer in range(2):
        start = f"blk.{layer}.attn_"
        shapes |= _feed_forward(layer) | {
            f"{start}norm.weight": (HIDDEN,),
            f"{start}q_a.weight": (HIDDEN, 32),
            f"{start}q_a_norm.weight": (32,),
            f"{start}q_b.weight": (32, 2 * 64),
            f"{start}kv_a_mqa.weight": (HIDDEN, 96),
            f"{start}kv_a_norm.weight": (64,),
            f"{start}k_b.weight": (32, 64, 2),
            f"{start}v_b.weight": (64, 32, 2),
            f"{start}output.weight": (2 * 32, HIDDEN),
        }
    return write_gguf(path, "deepseek2", metadata, shapes)


def jamba(path: Path) -> Path:
    """4 layers, the second of which has attention with 1 KV head of 32, the others a Mamba state."""
    inner, state, rank = 2 * HIDDEN, 16, 4
    metadata = _common(4) | {
        "attention.head_count_kv": [0, 1, 0, 0],
        "ssm.conv_kernel": 4,
        "ssm.inner_size": inner,
        "ssm.state_size": state,
        "ssm.time_step_rank": rank,
    }
    shapes: Shapes = {"output_norm.weight": (HIDDEN,)}
    for layer in range(4):
        shapes |= _feed_forward(layer)
        if layer == 1:
            shapes |= _heads(layer, 2 * 32, 32)
            continue
        start = f"blk.{layer}."
        shapes |= {
            f"{start}attn_norm.weight": (HIDDEN,),
            f"{start}ssm_in.weight": (HIDDEN, 2 * inner),
            f"{start}ssm_conv1d.weight": (4, inner),
            f"{start}ssm_conv1d.bias": (inner,),
            f"{start}ssm_x.weight": (inner, rank + 2 * state),
            f"{start}ssm_dt_norm.weight": (rank,),
            f"{start}ssm_dt.weight": (rank, inner),
            f"{start}ssm_dt.bias": (inner,),
            f"{start}ssm_b_norm.weight": (state,),
            f"{start}ssm_c_norm.weight": (state,),
            f"{start}ssm_a": (state, inner),
            f"{start}ssm_d": (inner,),
            f"{start}ssm_out.weight": (inner, HIDDEN),
        }
    return write_gguf(path, "jamba", metadata, shapes)
