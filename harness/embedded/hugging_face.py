"""The tiny model as a Hugging Face folder, for the engines that load one: vLLM, SGLang and mlx-lm.

Vocabulary, chat template and weights are those of the GGUF file of `harness.embedded.tiny_model`, so all engines make
the same tokens of a text, and compute the same thing from them as far as their number formats go.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.embedded.tiny_tokenizer import (
    CHAT_TEMPLATE,
    END_OF_TEXT,
    SPECIAL_TOKENS,
    TURN_END,
    Vocabulary,
    train,
)
from harness.embedded.tiny_weights import Matrix, Shape, tensors
from harness.workload.words import CANDIDATES

GENERATOR_VERSION = 1
"""Raised whenever the same arguments give other bytes, so that an old folder is not taken for a new one."""

NumberFormat = Literal["float32", "bfloat16"]

_OUTSIDE = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_A_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def tiny_folder(folder: Path, shape: Shape | None = None, number_format: NumberFormat = "bfloat16") -> Path:
    """The model's folder below `folder`; made if it is not there yet, in a second or two."""
    shape = shape or Shape()
    recipe = repr((GENERATOR_VERSION, astuple(shape), number_format, CANDIDATES))
    path = folder / f"tiny-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as aside:
            unfinished = Path(aside) / path.name
            unfinished.mkdir()
            write_folder(unfinished, shape, train(CANDIDATES), number_format)
            try:
                unfinished.rename(path)
            except OSError:  # another process was faster
                if not path.exists():
                    raise
    return path


def write_folder(folder: Path, shape: Shape, vocabulary: Vocabulary, number_format: NumberFormat) -> None:
    """Write config, tokeniser and weights into `folder`: about 2 or 4 bytes a weight."""
    ids = {"bos_token_id": vocabulary.token_id(END_OF_TEXT), "eos_token_id": vocabulary.token_id(TURN_END)}
    files: dict[str, Mapping[str, Any]] = {
        "config.json": {**_config(shape, len(vocabulary.tokens), number_format), **ids},
        "generation_config.json": ids,
        "tokenizer.json": tokenizer_json(vocabulary),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": END_OF_TEXT,
            "eos_token": TURN_END,
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "model_max_length": shape.context_tokens,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    weights = dict(named_weights(shape, vocabulary))
    write_safetensors(folder / "model.safetensors", weights, number_format)


def named_weights(shape: Shape, vocabulary: Vocabulary) -> Iterator[tuple[str, Matrix]]:
    """(Hugging Face's name, weights) of each tensor of `harness.embedded.tiny_weights`."""
    heads = {"attn_q": shape.heads, "attn_k": shape.kv_heads}
    for name, weights in tensors(shape, len(vocabulary.tokens), vocabulary.whole_words):
        *layer, kind, suffix = name.split(".")
        if kind in heads:
            weights = halves_apart(weights, heads[kind])
        place = f"model.layers.{layer[1]}.{_IN_A_LAYER[kind]}" if layer else _OUTSIDE[kind]
        yield f"{place}.{suffix}", weights


def halves_apart(weights: Matrix, heads: int) -> Matrix:
    """Query or key rows in the order in which Hugging Face's Llama rotates them.

    GGUF's Llama turns rows 2i and 2i + 1 of a head together; Hugging Face's turns row i and row i + head size / 2.
    """
    rows, columns = weights.shape
    pairs = weights.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def tokenizer_json(vocabulary: Vocabulary) -> dict[str, Any]:
    """What the `tokenizers` library loads: GPT-2's way of byte-level BPE, with the special tokens."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocabulary.token_id(token), "content": token, **special} for token in SPECIAL_TOKENS],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(vocabulary.tokens)},
            "merges": [list(pair) for pair in vocabulary.merges],
        },
    }


def write_safetensors(path: Path, weights: Mapping[str, Matrix], number_format: NumberFormat) -> None:
    """Write the format of safetensors: the header's length (8 bytes, lowest first), a JSON header, the numbers."""
    encode, dtype, size = _ENCODINGS[number_format]
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, matrix in weights.items():
        begin, end = end, end + matrix.size * size
        header[name] = {"dtype": dtype, "shape": list(matrix.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for matrix in weights.values():
            file.write(encode(matrix).tobytes())


def to_bfloat16(matrix: Matrix) -> NDArray[np.uint16]:
    """The upper halves of the float32 numbers, rounded to nearest, ties to even."""
    bits: NDArray[np.uint32] = np.ascontiguousarray(matrix, "<f4").view("<u4")
    upper: NDArray[np.uint16] = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return upper


def _config(shape: Shape, vocabulary_size: int, number_format: NumberFormat) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_size,
        "max_position_embeddings": shape.context_tokens,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "vocab_size": vocabulary_size,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": number_format,
    }


_ENCODINGS: Mapping[NumberFormat, tuple[Callable[[Matrix], NDArray[Any]], str, int]] = {
    "float32": (lambda matrix: matrix.astype("<f4"), "F32", 4),
    "bfloat16": (to_bfloat16, "BF16", 2),
}
"""How numbers are written: encoder, safetensors' name of the type, bytes of a number."""
