"""A tiny Llama with random weights as a GGUF file, made on the spot and kept in the user's cache folder.

What it computes is noise, but tokenising, prefill, decoding and the reuse of its KV cache are those of a real model.
It answers with a salad of common English words, one token each, which never ends by itself: the length is what
`max_tokens` says, and the answer sent back makes the very same tokens again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import astuple
from pathlib import Path

import gguf

from harness.embedded.tiny_tokenizer import (
    CHAT_TEMPLATE,
    END_OF_TEXT,
    SPECIAL_TOKENS,
    TURN_END,
    Vocabulary,
    train,
)
from harness.embedded.tiny_weights import Shape, tensors
from harness.workload.words import CANDIDATES

GENERATOR_VERSION = 1
"""Raised whenever the same arguments give other bytes, so that an old file in the cache is not taken for a new one."""


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/kvswarm, or ~/.cache/kvswarm."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kvswarm"


def tiny_model(shape: Shape | None = None, folder: Path | None = None) -> Path:
    """The model's file in `folder` (default: the cache folder); made if it is not there yet, in a second or two."""
    shape = shape or Shape()
    folder = folder or cache_folder()
    recipe = repr((GENERATOR_VERSION, astuple(shape), CANDIDATES))
    path = folder / f"tiny-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}.gguf"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="making-") as aside:
            unfinished = Path(aside) / path.name
            write_model(unfinished, shape, train(CANDIDATES))
            unfinished.replace(path)
    return path


def write_model(path: Path, shape: Shape, vocabulary: Vocabulary) -> None:
    """Write the model in Q8_0 (norms in float32): about 1.06 bytes a weight."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("kvswarm tiny")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_context_length(shape.context_tokens)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.head_size)
    writer.add_vocab_size(len(vocabulary.tokens))

    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(
        [gguf.TokenType.CONTROL if token in SPECIAL_TOKENS else gguf.TokenType.NORMAL for token in vocabulary.tokens]
    )
    writer.add_token_merges([" ".join(pair) for pair in vocabulary.merges])
    writer.add_bos_token_id(vocabulary.token_id(END_OF_TEXT))
    writer.add_eos_token_id(vocabulary.token_id(TURN_END))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)

    q8_0 = gguf.GGMLQuantizationType.Q8_0
    for name, weights in tensors(shape, len(vocabulary.tokens), vocabulary.whole_words):
        if weights.ndim == 1:
            writer.add_tensor(name, weights)
        else:
            writer.add_tensor(name, gguf.quants.quantize(weights, q8_0), raw_dtype=q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
