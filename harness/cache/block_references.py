"""Which full blocks the requests of a list refer to.

A block is known by a hash of what it holds and of all before it. Unlike `harness.cache.block_chain`, nothing is kept of
the blocks seen: so a sample of them costs only what is sampled.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.cache.base import Prompt

Hashes = npt.NDArray[np.uint64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ROOT = 0x6A09E667F3BCC908
_ODD_A, _ODD_B = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_VALUES = 2**64
_MASK = _VALUES - 1


@dataclass(frozen=True, slots=True)
class BlockReferences:
    """The block references of a list of requests, in the order of the requests and within each from head to tail."""

    block_tokens: int
    sampled_share: float
    """Share of the distinct blocks that are kept, chosen by their hash; 1: all of them."""
    hashes: Hashes
    """Shape (references,). A hash stands for a block and all before it, so equal hashes are equal prefixes."""
    per_request: Whole
    """Shape (requests,): how many of `hashes` are of each request."""
    can_hit: Flags
    """Shape (references,). False for the block that ends with its prompt: the last token is always computed."""
    prompt_tokens: Whole
    """Shape (requests,): length of each prompt."""

    @property
    def requests(self) -> Whole:
        """Shape (references,): number of the request that each reference is of."""
        return np.repeat(np.arange(len(self.per_request)), self.per_request)

    @property
    def most_hits(self) -> int:
        """References of all requests, sampled or not, that a cache could serve: floor((tokens - 1) / block) each."""
        return int(((self.prompt_tokens - 1) // self.block_tokens).sum())


def block_references(prompts: Iterable[Prompt], block_tokens: int, sampled_share: float = 1.0) -> BlockReferences:
    """Cut every prompt into full blocks of `block_tokens`; what is left at its end is no block.

    The hashes have 64 bits: among a million distinct blocks, the chance that any two are taken for one is 3e-8. A
    sample keeps the blocks whose hash is below `sampled_share` of all values: the same blocks in every request.
    """
    if not 0 < sampled_share <= 1:
        raise ValueError(f"sampled_share is {sampled_share}; it lies above 0, and is 1 at most")
    below = int(sampled_share * _VALUES)
    kept, can_hit, per_request, prompt_tokens = array("Q"), bytearray(), array("q"), array("q")
    for prompt in prompts:
        hashes = block_hashes(prompt, block_tokens)
        tokens = sum(length for _, length in prompt)
        most = (tokens - 1) // block_tokens
        flags = b"\1" * most + b"\0" * (len(hashes) - most)
        if below < _VALUES:
            flags = bytes(flag for value, flag in zip(hashes, flags, strict=True) if value < below)
            hashes = [value for value in hashes if value < below]
        kept.extend(hashes)
        can_hit += flags
        per_request.append(len(hashes))
        prompt_tokens.append(tokens)
    return BlockReferences(
        block_tokens,
        below / _VALUES,
        np.array(kept, dtype=np.uint64),
        np.array(per_request, dtype=np.int64),
        np.array(can_hit, dtype=np.bool_),
        np.array(prompt_tokens, dtype=np.int64),
    )


def block_hashes(prompt: Prompt, block_tokens: int) -> Sequence[int]:
    """The hash of each full block of a prompt and all that stands before it."""
    hashes = []
    value, free = _ROOT, block_tokens
    for identity, tokens in prompt:
        start = 0
        while tokens - start >= free:
            if start == 0 and free == block_tokens:
                # A block that is the head of one piece is named by the piece alone: the common case, and half the work.
                value = _mix(value ^ identity)
            else:
                value = _mix(_mix(value ^ identity) ^ (start << 32 | free))
            hashes.append(value)
            start, free = start + free, block_tokens
        if start < tokens:
            value = _mix(_mix(value ^ identity) ^ (start << 32 | (tokens - start)))
            free -= tokens - start
    return hashes


def _mix(value: int) -> int:
    """A bijection of 64-bit numbers that spreads every bit: siblings of one parent never collide."""
    value = (value & _MASK) * _ODD_A & _MASK
    value = (value ^ (value >> 32)) * _ODD_B & _MASK
    return value ^ (value >> 32)
