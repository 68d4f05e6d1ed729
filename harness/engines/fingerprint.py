"""Short marks by which two tokenisers or two chat templates are told apart."""

from __future__ import annotations

import hashlib
import json

from harness.engines.base import ChatMessages

PROBE_TEXT = " The quick brown fox, 12345 times; naïve café 東京 \n\tdef f(x): return x**2\n"
"""Its token ids mark a tokeniser: words, digits, accents, another script, white space, code."""

_TURNS: ChatMessages = (
    {"role": "user", "content": "First question?"},
    {"role": "assistant", "content": "First answer."},
    {"role": "user", "content": "Second question?"},
)
PROBE_CHATS: tuple[ChatMessages, ...] = (({"role": "system", "content": "Be brief."}, *_TURNS), _TURNS, _TURNS[:1])
"""The token ids of the first of them that a template takes mark the template; some take no system message."""


def fingerprint(value: object) -> str:
    """The first 16 hex digits of sha-256 over the value as JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
