"""Chats as streams of tokens of four bytes each: made by a tokeniser, or estimated from the text's length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson

from harness.errors import InputError

TOKEN_BYTES = 4
ESTIMATED_BYTES = 4
"""UTF-8 bytes of text that are taken for one token where no tokeniser is given; rounded up for each message."""
HEADER_TOKENS, END_TOKENS = 3, 2
"""Tokens of the template before and after the content of a message, as ChatML has them."""
_KEPT_TEXTS = 4096
"""A conversation's messages come again with every request."""
_NO_TEXT = b"\xff"
"""First byte of the template's tokens and filler of an estimated text: not a byte of UTF-8, nor of a token id."""

TextTokens = Callable[[str], bytes]
"""A text as `TOKEN_BYTES` bytes for each of its tokens."""


class ChatText(NamedTuple):
    """What a template would show of one message."""

    role: str
    text: str


def stream_of(messages: Sequence[ChatText], text_tokens: TextTokens) -> bytes:
    """The whole prompt: header, content and end of each message, then the header of the answer.

    What the template's tokens really are is not known; here they depend on the role alone.
    """
    parts = []
    for role, text in messages:
        parts += [_header(role), text_tokens(text), _END]
    return b"".join([*parts, _header("assistant")])


def estimated_tokens() -> TextTokens:
    """A token for every `ESTIMATED_BYTES` bytes that a text begins."""

    @lru_cache(_KEPT_TEXTS)
    def tokens(text: str) -> bytes:
        encoded = text.encode()
        return encoded + _NO_TEXT * (-len(encoded) % ESTIMATED_BYTES)

    return tokens


def counted_tokens(tokenizer: Path) -> TextTokens:
    """The token ids of a tokenizer.json. Raises InputError if it cannot be used, or if nothing here can read it."""
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InputError("Counting tokens takes the package tokenizers: pip install tokenizers") from None
    try:
        content = tokenizer.read_bytes()
    except OSError as problem:
        raise InputError(f"{tokenizer}: cannot be read: {problem.strerror}") from None
    try:
        loaded = Tokenizer.from_buffer(content)
    except ValueError as problem:
        raise InputError(f"{tokenizer}: not a tokenizer.json: {problem}") from None

    @lru_cache(_KEPT_TEXTS)
    def tokens(text: str) -> bytes:
        ids = loaded.encode(text, add_special_tokens=False).ids
        return b"".join([one.to_bytes(TOKEN_BYTES, "big") for one in ids])

    return tokens


def _template_token(name: str) -> bytes:
    return _NO_TEXT + sha256(name.encode()).digest()[: TOKEN_BYTES - 1]


@lru_cache(_KEPT_TEXTS)
def _header(role: str) -> bytes:
    return _template_token("start") + _template_token(f"role {role}") + _template_token("line")


_END = _template_token("end") + _template_token("line")


def as_text(value: object) -> str:
    """JSON as a template shows it: no more blanks than needed, keys as they come."""
    return orjson.dumps(value).decode()
