"""The bodies and events of mlx-lm's answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FINGERPRINT = "0.32.2+simulated-0.32.4-simulated"
"""What `system_fingerprint` says: mlx-lm's version and mlx's, and that there is neither."""
DONE = b"data: [DONE]\n\n"
STEP_TOKENS = 2048
"""Tokens of a prompt that it computes at once (`--prefill-step-size`)."""


def in_json(body: object) -> bytes:
    return json.dumps(body).encode()


def event(body: object) -> bytes:
    return b"data: " + in_json(body) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Told:
    """What usage says of an answer."""

    prompt_tokens: int
    output_tokens: int
    cached_tokens: int

    def usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.prompt_tokens + self.output_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


class Bodies:
    """Those of one answer."""

    def __init__(self, id_: str, created_s: int, model: str, chat: bool, streams: bool) -> None:
        """`created_s`: Unix time."""
        self._id = id_
        self._created_s = created_s
        self._model = model
        self._chat = chat
        kind = "chat.completion.chunk" if streams else "chat.completion"
        self._object = kind if chat else "text_completion"
        if streams:
            self._before, self._after = event(self._chunk("\0", None)).split(rb"\u0000")

    def piece(self, text: bytes) -> bytes:
        """`text`: as it stands inside a JSON string."""
        return self._before + text + self._after

    def last(self, finish_reason: str) -> bytes:
        """The event that says how the answer ended."""
        return event(self._chunk("", finish_reason))

    def usage(self, told: Told) -> bytes:
        """It is a "chat.completion" also in the stream of a completion."""
        return event({**self._head("chat.completion"), "choices": [], "usage": told.usage()})

    def whole(self, text: str, finish_reason: str, told: Told) -> bytes:
        said = {"message": {"role": "assistant", "content": text or None}} if self._chat else {"text": text}
        choice = {"index": 0, "finish_reason": finish_reason, **said}
        return in_json({**self._head(self._object), "choices": [choice], "usage": told.usage()})

    def _chunk(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish_reason}
        if self._chat:
            choice["delta"] = {"role": "assistant", "content": text} if text else {"role": "assistant"}
        else:
            choice["text"] = text
        return {**self._head(self._object), "choices": [choice]}

    def _head(self, kind: str) -> dict[str, Any]:
        head = {"id": self._id, "system_fingerprint": FINGERPRINT, "object": kind}
        return {**head, "model": self._model, "created": self._created_s}


def keepalive(processed: int, total: int) -> bytes:
    """A comment; both are counts of the part of the prompt that is computed."""
    return b": keepalive %d/%d\n\n" % (processed, total)


def milestones(cached: int, system: int, prompt: int) -> Iterator[int]:
    """Tokens of the prompt that are there after each step of its computation.

    It computes the system messages first, then the rest but for the last token, then that one.
    """
    done = cached
    for border in (system, prompt - 1, prompt):
        while done < border:
            done = min(border, done + STEP_TOKENS)
            yield done


def error(message: str) -> Mapping[str, str]:
    return {"error": message}
