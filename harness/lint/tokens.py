"""Prompts as streams of tokens of `TOKEN_BYTES` bytes each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.lint.differing import common_length
from harness.lint.segments import PROMPT, ChatPrompt
from harness.traces.token_stream import (
    ESTIMATED_BYTES,
    TOKEN_BYTES,
    TextTokens,
    counted_tokens,
    estimated_tokens,
    stream_of,
)


@dataclass(frozen=True, slots=True)
class Tokens:
    """How prompts are cut into tokens."""

    stream: Callable[[ChatPrompt], bytes]
    how: str
    """For people: a sentence."""

    def count(self, prompt: ChatPrompt) -> int:
        return len(self.stream(prompt)) // TOKEN_BYTES


def by_text(tokenizer: Path | None = None) -> Tokens:
    """As a tokenizer.json counts each text, or as its bytes let one estimate. Raises InputError."""
    if tokenizer is None:
        return Tokens(
            _streams(estimated_tokens()),
            f"Tokens are estimated, one for every {ESTIMATED_BYTES} bytes; --tokenizer or --target counts them.",
        )
    return Tokens(
        _streams(counted_tokens(tokenizer)),
        f"Tokens are counted by {tokenizer.name}; the chat template's own are estimated.",
    )


def common_tokens(one: bytes, other: bytes) -> int:
    """Tokens that two streams both begin with."""
    return common_length(one, other) // TOKEN_BYTES


def packed(ids: Sequence[int]) -> bytes:
    """Token ids as a stream."""
    return b"".join([one.to_bytes(TOKEN_BYTES, "big") for one in ids])


def _streams(text_tokens: TextTokens) -> Callable[[ChatPrompt], bytes]:
    def stream(prompt: ChatPrompt) -> bytes:
        if prompt.segments[0].role == PROMPT:
            return text_tokens(prompt.segments[0].text)
        return stream_of(prompt.chat(), text_tokens)

    return stream
