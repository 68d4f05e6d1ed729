"""The bodies and events of llama.cpp's answers: OpenAI's chats, OpenAI's completions, and its own completions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

Fields = Mapping[str, Any]

DONE = b"data: [DONE]\n\n"
_FINGERPRINT = "system_fingerprint"


@dataclass(frozen=True, slots=True)
class Named:
    """What every body of one answer says."""

    id: str
    created_s: int
    """Unix time."""
    model: str
    build: str


@dataclass(frozen=True, slots=True)
class Ending:
    """What is told when an answer is complete."""

    text: str
    token_ids: Sequence[int]
    """Those of the answer, if they are asked for."""
    stop: str | None
    """The stop string at which it ended; None: it has the length that was asked for."""
    usage: Fields
    timings: Fields
    wants_usage: bool
    own: Fields
    """What only llama.cpp's own completions tell: slot, settings, prompt, tokens in the slot."""

    @property
    def finish_reason(self) -> str:
        return "length" if self.stop is None else "stop"


class Bodies(Protocol):
    """One kind of answer. `more`: objects to add to an event, `timings` or `prompt_progress`."""

    def opening(self) -> bytes:
        """What comes before the first token's event."""
        ...

    def progress(self, more: Fields) -> bytes: ...

    def piece(self, text: bytes, token: int, number: int, more: Fields | None = None) -> bytes:
        """The event of the answer's token `number`, from 1 on; `text` as it stands inside a JSON string."""
        ...

    def end(self, ending: Ending) -> bytes: ...

    def whole(self, ending: Ending) -> bytes:
        """The body where nothing is streamed."""
        ...


def event(body: Fields) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


def split(body: Fields) -> tuple[bytes, bytes]:
    """An event before and after the place of its text, which is marked by a zero byte."""
    before, after = event(body).split(rb"\u0000")
    return before, after


def extended(after: bytes, more: Fields | None) -> bytes:
    """The end of an event with further fields in its object."""
    return after if more is None else after[:-3] + b"," + orjson.dumps(more)[1:] + b"\n\n"


class Chat:
    """Each event of a chat has a delta; the role comes in one of its own, before the first token."""

    def __init__(self, named: Named) -> None:
        self._named = named
        self._before, self._after = split(self._chunk({"content": "\0"}))
        self._opening = self._chunk({"role": "assistant", "content": None})

    def _chunk(self, delta: Fields | None, finish_reason: str | None = None) -> dict[str, Any]:
        named = self._named
        choices = [] if delta is None else [{"finish_reason": finish_reason, "index": 0, "delta": delta}]
        told = {"choices": choices, "created": named.created_s, "id": named.id, "model": named.model}
        return {**told, _FINGERPRINT: named.build, "object": "chat.completion.chunk"}

    def opening(self) -> bytes:
        return event(self._opening)

    def progress(self, more: Fields) -> bytes:
        return event({**self._opening, **more})

    def piece(self, text: bytes, token: int, number: int, more: Fields | None = None) -> bytes:
        return self._before + text + extended(self._after, more) if text else b""

    def end(self, ending: Ending) -> bytes:
        last = self._chunk({}, ending.finish_reason)
        if not ending.wants_usage:
            return event({**last, "timings": ending.timings}) + DONE
        return event(last) + event({**self._chunk(None), "usage": ending.usage, "timings": ending.timings}) + DONE

    def whole(self, ending: Ending) -> bytes:
        message = {"role": "assistant", "content": ending.text}
        choice = {"finish_reason": ending.finish_reason, "index": 0, "message": message}
        return orjson.dumps(_openai_body(self._named, "chat.completion", choice, ending))


class Text:
    """Each event of a completion has a text; its last one always tells usage and timings."""

    def __init__(self, named: Named) -> None:
        self._named = named
        self._before, self._after = split(self._chunk("\0"))

    def _chunk(self, text: str) -> dict[str, Any]:
        named = self._named
        told = {"choices": [_text_choice(text)], "created": named.created_s, "model": named.model}
        return {**told, _FINGERPRINT: named.build, "object": "text_completion", "id": named.id}

    def opening(self) -> bytes:
        return b""

    def progress(self, more: Fields) -> bytes:
        return event({**self._chunk(""), **more})

    def piece(self, text: bytes, token: int, number: int, more: Fields | None = None) -> bytes:
        return self._before + text + extended(self._after, more)

    def end(self, ending: Ending) -> bytes:
        return event(self._body("", ending)) + DONE

    def whole(self, ending: Ending) -> bytes:
        return orjson.dumps(self._body(ending.text, ending))

    def _body(self, text: str, ending: Ending) -> dict[str, Any]:
        return _openai_body(self._named, "text_completion", _text_choice(text, ending.finish_reason), ending)


class Native:
    """llama.cpp's own completions: their stream has no [DONE]."""

    def __init__(self, named: Named, prompt_tokens: int) -> None:
        self._named = named
        self._prompt_tokens = prompt_tokens

    def opening(self) -> bytes:
        return b""

    def progress(self, more: Fields) -> bytes:
        return self.piece(b"", 0, 0, more)

    def piece(self, text: bytes, token: int, number: int, more: Fields | None = None) -> bytes:
        after = b'","tokens":[%d],"stop":false,"id_slot":-1,"tokens_predicted":%d,"tokens_evaluated":%d}\n\n'
        told = after % (token, number, self._prompt_tokens)
        return b'data: {"index":0,"content":"' + text + extended(told, more)

    def end(self, ending: Ending) -> bytes:
        return event(self._body("", (), ending))

    def whole(self, ending: Ending) -> bytes:
        return orjson.dumps(self._body(ending.text, ending.token_ids, ending))

    def _body(self, text: str, token_ids: Sequence[int], ending: Ending) -> dict[str, Any]:
        own = dict(ending.own)
        return {
            "index": 0,
            "content": text,
            "tokens": list(token_ids),
            "id_slot": own.pop("id_slot"),
            "stop": True,
            "model": self._named.model,
            "tokens_predicted": ending.usage["completion_tokens"],
            "tokens_evaluated": ending.usage["prompt_tokens"],
            "generation_settings": own.pop("generation_settings"),
            "prompt": own.pop("prompt"),
            "has_new_line": False,
            "truncated": False,
            "stop_type": "limit" if ending.stop is None else "word",
            "stopping_word": ending.stop or "",
            **own,
            "timings": ending.timings,
        }


def _text_choice(text: str, finish_reason: str | None = None) -> dict[str, Any]:
    return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_reason}


def _openai_body(named: Named, kind: str, choice: Fields, ending: Ending) -> dict[str, Any]:
    return {
        "choices": [choice],
        "created": named.created_s,
        "model": named.model,
        _FINGERPRINT: named.build,
        "object": kind,
        "usage": ending.usage,
        "id": named.id,
        "timings": ending.timings,
    }
