"""Random weights of a small Llama, under GGUF's tensor names; the same on every machine for the same shape and seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

BYTE_DEVIATION = math.sqrt((256**2 - 1) / 12)
"""Standard deviation of a uniformly drawn byte."""
FOCUS = 2.0
"""Gain of the query and key projections: attention then picks a few tokens instead of averaging all of them,
so that what is said depends on the whole prompt."""
WORD_GAIN = 4.0
"""Standard deviation of the logits of whole words; all other tokens have the logit 0."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The default has 14 million weights and 4 KiB of KV cache a token; one CPU prefills over 1,000 tokens/s."""

    layers: int = 8
    hidden: int = 384
    heads: int = 6
    kv_heads: int = 2
    feed_forward: int = 1024
    """Like `hidden` a multiple of 32, the block length of Q8_0."""
    context_tokens: int = 32768
    """What the model claims to be made for; the server decides what it allocates."""
    seed: int = 1

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


def tensors(shape: Shape, vocabulary_size: int, sayable: Collection[int]) -> Iterator[tuple[str, Matrix]]:
    """Yield (name, weights), rows being outputs; norms have one dimension and are all ones.

    Only the token ids in `sayable` get an output row that is not zero. The best of many logits of deviation
    `WORD_GAIN` is never below 0, so a greedy sampler says nothing but these tokens and never ends its turn.
    """
    source = np.random.PCG64(shape.seed)
    hidden, kv_width = shape.hidden, shape.kv_heads * shape.head_size

    def drawn(rows: int, columns: int, gain: float = 1.0) -> Matrix:
        """Uniform weights that turn inputs of deviation 1 into outputs of deviation `gain`.

        Bytes of the bit generator and one multiplication: no step of it depends on the platform's libm.
        """
        count = rows * columns
        raw = source.random_raw(-(-count // 8)).astype("<u8").view(np.uint8)[:count]
        centred = raw.astype(np.float32) - np.float32(127.5)
        return (centred * np.float32(gain / math.sqrt(columns) / BYTE_DEVIATION)).reshape(rows, columns)

    norm = np.ones(hidden, np.float32)
    yield "token_embd.weight", drawn(vocabulary_size, hidden, math.sqrt(hidden))
    for layer in range(shape.layers):
        prefix = f"blk.{layer}."
        yield prefix + "attn_norm.weight", norm
        yield prefix + "attn_q.weight", drawn(hidden, hidden, FOCUS)
        yield prefix + "attn_k.weight", drawn(kv_width, hidden, FOCUS)
        yield prefix + "attn_v.weight", drawn(kv_width, hidden)
        yield prefix + "attn_output.weight", drawn(hidden, hidden)
        yield prefix + "ffn_norm.weight", norm
        yield prefix + "ffn_gate.weight", drawn(shape.feed_forward, hidden)
        yield prefix + "ffn_up.weight", drawn(shape.feed_forward, hidden)
        yield prefix + "ffn_down.weight", drawn(hidden, shape.feed_forward)
    yield "output_norm.weight", norm
    head = drawn(vocabulary_size, hidden, WORD_GAIN)
    head[[token for token in range(vocabulary_size) if token not in sayable]] = 0
    yield "output.weight", head
