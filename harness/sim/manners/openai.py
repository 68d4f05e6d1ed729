"""Requests of the OpenAI API, as far as simulated engines take them, and what was asked for by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from harness.sim.generation import Generation
from harness.sim.vocabulary import Vocabulary

Fault = Mapping[str, Any]
"""One thing that is wrong with a body, as pydantic says it: type, loc (from "body" on), msg, input, at times ctx."""


class BadBody(Exception):
    """A body that is no JSON, or not of the shape that the endpoint wants. `faults`: one at least."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(faults)
        self.faults = faults


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class Message(BaseModel):
    role: str
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or ())


def _chat(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.text} for message in messages]


class StreamOptions(BaseModel):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class Body(BaseModel):
    """What chats and completions have in common. Unknown fields are ignored, as the engines do."""

    model: str | None = None
    max_tokens: int | None = None
    min_tokens: int = 0
    temperature: float | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    stop: str | list[str] | None = None
    ignore_eos: bool = False
    logit_bias: dict[int, float] | None = None
    n: int = 1
    cache_salt: str | None = None
    extra_key: str | None = None
    logprobs: bool | int | None = None
    return_token_ids: bool = False

    @property
    def most_tokens(self) -> int | None:
        """The greatest length of the answer that was asked for."""
        return self.max_tokens

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else self.stop or []

    def forced_token(self) -> int | None:
        """The token that a bias of 100 leaves no alternative to."""
        return next((token for token, bias in (self.logit_bias or {}).items() if bias >= 100), None)


class ChatBody(Body):
    messages: list[Message]
    max_completion_tokens: int | None = None
    add_generation_prompt: bool = True

    @property
    def most_tokens(self) -> int | None:
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def chat(self) -> list[dict[str, str]]:
        return _chat(self.messages)


class CompletionBody(Body):
    prompt: str | list[int] | list[str] | list[list[int]]
    echo: bool = False


class TokenizeBody(BaseModel):
    """POST /tokenize: of a text, or of a chat."""

    prompt: str | None = None
    messages: list[Message] | None = None
    add_generation_prompt: bool = True
    return_token_strs: bool = False

    def chat(self) -> list[dict[str, str]]:
        return _chat(self.messages or [])


class DetokenizeBody(BaseModel):
    tokens: list[int]


def prompt_ids(body: ChatBody | CompletionBody, vocabulary: Vocabulary) -> list[int] | None:
    """Token ids of the prompt; None: it is not one prompt of at least one known token, or is to be echoed."""
    if isinstance(body, ChatBody):
        return vocabulary.encode_chat(body.chat(), body.add_generation_prompt)
    prompt = body.prompt
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str):
        ids = vocabulary.encode(prompt)
    else:
        ids = [token for token in prompt if isinstance(token, int)]
        if len(ids) != len(prompt) or not vocabulary.has(ids):
            return None
    return None if body.echo or not ids else ids


@dataclass(slots=True, eq=False, kw_only=True)
class Asked(Generation):
    """A generation with what its answer must say beside tokens."""

    id: str
    created_s: int
    """Unix time."""
    model: str
    streams: bool
    asked_tokens: int
    """The answer's greatest length as it was asked for; `max_tokens` is less if a stop comes before."""
    stop: str | int | None = None
    """What ends the answer before it has its greatest length: a string, or a token's id; None: nothing."""
    pieces: Sequence[str] | None = None
    """What a stream says at each token, where stop strings are looked for; None: each token as it is."""
    said: str | None = None
    """All that the answer says, up to the stop string; None: its tokens."""
    _told_tokens: int = 0
    _told_s: float = 0.0

    @property
    def finish_reason(self) -> str:
        """Empty: it is under way."""
        return "stop" if self.end == "length" and self.stop is not None else self.end or ""

    def tell(self, now_s: float) -> tuple[int, float | None]:
        """How many tokens came since this was asked last, and the time from the last one before to these, if any."""
        new = len(self.output_ids) - self._told_tokens
        if not new:
            return 0, None
        gap_s = now_s - self._told_s if self._told_tokens else None
        self._told_tokens += new
        self._told_s = now_s
        return new, gap_s


B = TypeVar("B", bound=BaseModel)


def read(body: bytes, kind: type[B], loads: Callable[[bytes], Any]) -> B:
    """The body as `kind`, read as JSON by `loads`, in whose words it says what is wrong. Raises BadBody."""
    if not body:
        raise BadBody([{"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}])
    try:
        return kind.model_validate(loads(body), from_attributes=True)
    except json.JSONDecodeError as error:
        raise BadBody([_no_json(error.msg, error.pos)]) from error
    except UnicodeDecodeError as error:
        raise BadBody([_no_json(error.reason, error.start)]) from error
    except ValidationError as error:
        faults = error.errors(include_url=False)
        raise BadBody([{**fault, "loc": ("body", *fault["loc"])} for fault in faults]) from error


def _no_json(what: str, place: int) -> Fault:
    """As FastAPI says it."""
    loc = ("body", place)
    return {"type": "json_invalid", "loc": loc, "msg": "JSON decode error", "input": {}, "ctx": {"error": what}}


def in_json(value: object) -> bytes:
    return orjson.dumps(value)
