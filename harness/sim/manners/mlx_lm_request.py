"""What is asked of mlx-lm's server: the body of a chat or completion, checked as it checks it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.sim.generation import Generation
from harness.sim.vocabulary import Vocabulary

Body = Mapping[str, Any]
Messages = Sequence[Mapping[str, str]]

DEFAULT_TOKENS = 512
MODEL = "default_model"
"""The name of the model that the server was started with."""

_BOOL, _INT, _STR, _FLOAT, _NUMBER = (bool,), (int,), (str,), (float,), (float, int)


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    kinds: tuple[type, ...]
    default: Any = None
    least: float | None = None
    most: float | None = None
    optional: bool = False
    also: tuple[float, ...] = ()
    """Values that may lie outside."""


_RULES = (
    _Rule("stream", _BOOL, False),
    _Rule("max_tokens", _INT, DEFAULT_TOKENS, least=1),
    _Rule("temperature", _NUMBER, 0.0, least=0),
    _Rule("top_p", _NUMBER, 1.0, least=0, most=1),
    _Rule("top_k", _INT, 0, least=0),
    _Rule("min_p", _NUMBER, 0.0, least=0, most=1),
    _Rule("num_draft_tokens", _INT, 3, least=0),
    _Rule("repetition_penalty", _NUMBER, 0.0, least=0),
    _Rule("repetition_context_size", _INT, 20, least=0),
    _Rule("presence_penalty", _NUMBER, 0.0),
    _Rule("presence_context_size", _INT, 20, least=0),
    _Rule("frequency_penalty", _NUMBER, 0.0),
    _Rule("frequency_context_size", _INT, 20, least=0),
    _Rule("logprobs", _BOOL, False),
    _Rule("top_logprobs", _INT, -1, least=0, most=11, also=(-1,)),
    _Rule("xtc_probability", _FLOAT, 0.0, least=0, most=1),
    _Rule("xtc_threshold", _FLOAT, 0.1, least=0, most=1),
    _Rule("model", _STR, MODEL),
    _Rule("adapters", _STR, optional=True),
    _Rule("seed", _INT, optional=True),
    _Rule("logit_bias", (dict,), optional=True),
)
"""In the order in which they are checked."""
_NO_TEXT = (
    "text input must be of type `str` (single example), `list[str]` (batch or single pretokenized example) or "
    "`list[list[str]]` (batch of pretokenized examples) or `list[tuple[list[str], list[str]]]` (batch of pretokenized "
    "sequence pairs)."
)
_SHOWN = {"model": "requested_model", "adapters": "adapter"}
"""What the server calls a field in its messages, where that is another name."""


class BadRequest(Exception):
    """Answered with 400 and its text."""


class Unserved(Exception):
    """Answered with 404 and its text: the generation could not begin."""


@dataclass(slots=True, eq=False, kw_only=True)
class Asked(Generation):
    """A request with what its answer must say beside tokens."""

    chat: bool
    body: Body
    model: str
    streams: bool
    pieces: Sequence[str] | None = None
    """What is said at each token, where there are stop words; None: each token as it is."""
    stopped: bool = False
    """The answer ends at a stop word."""

    @property
    def finish_reason(self) -> str:
        return "stop" if self.stopped else "length"

    @property
    def wants_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, dict) and bool(options.get("include_usage"))

    @property
    def has_sound_options(self) -> bool:
        """False: it trips over the options at the end of the stream, which breaks off there."""
        options = self.body.get("stream_options")
        return options is None or (isinstance(options, dict) and "include_usage" in options)


def parsed(body: bytes) -> Body:
    """Raises BadRequest."""
    try:
        found = json.loads(body)
    except json.JSONDecodeError as error:
        raise BadRequest(f"Invalid JSON in request body: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest("Request should be a JSON dictionary")
    return found


def checked(body: Body, chat: bool) -> Asked:
    """The request, as yet without its prompt. Raises BadRequest."""
    values = {rule.name: _value(body, rule) for rule in _RULES}
    if values["logit_bias"] is not None:
        try:
            {int(token): float(bias) for token, bias in values["logit_bias"].items()}
        except ValueError:
            raise BadRequest("logit_bias must be a dict of int to float") from None
    if chat:
        _check_messages(body)
    elif "prompt" not in body:
        raise BadRequest("Request did not contain a prompt")
    return Asked(
        prompt_ids=(),
        max_tokens=values["max_tokens"],
        chat=chat,
        body=body,
        model=values["model"],
        streams=values["stream"],
    )


def _value(body: Body, rule: _Rule) -> Any:
    value = body.get(rule.name, rule.default)
    if rule.name == "max_tokens" and body.get("max_completion_tokens") is not None:
        value = body["max_completion_tokens"]
    if rule.optional and value is None:
        return None
    name = _SHOWN.get(rule.name, rule.name)
    if not isinstance(value, rule.kinds):
        names = tuple(kind.__name__ for kind in rule.kinds)
        raise BadRequest(f"{name} must be of type {names if len(names) > 1 else names[0]}")
    if value not in rule.also:
        _check_range(name, value, rule)
    return value


def _check_range(name: str, value: Any, rule: _Rule) -> None:
    if rule.least is not None and value < rule.least:
        raise BadRequest(f"{name} must be at least {rule.least}")
    if rule.most is not None and value > rule.most:
        raise BadRequest(f"{name} must be at most {rule.most}")


def _check_messages(body: Body) -> None:
    if "messages" not in body:
        raise BadRequest("Request did not contain messages")
    for message in body["messages"]:
        if not isinstance(message, dict):
            raise BadRequest(f"'{type(message).__name__}' object has no attribute 'get'")


def stop_words(body: Body) -> list[str]:
    stop = body.get("stop") or []
    return [stop] if isinstance(stop, str) else list(stop)


def set_prompt(asked: Asked, vocabulary: Vocabulary) -> None:
    """Its tokens, and those of its system messages. Raises Unserved."""
    if not asked.chat:
        if not isinstance(asked.body["prompt"], str):
            raise Unserved(_NO_TEXT)
        asked.prompt_ids = vocabulary.encode(asked.body["prompt"])
        return
    messages = _messages(asked.body["messages"])
    asked.prompt_ids = vocabulary.encode_chat(messages)
    asked.system_tokens = system_tokens(messages, asked.prompt_ids, vocabulary)


def system_tokens(messages: Messages, prompt_ids: Sequence[int], vocabulary: Vocabulary) -> int:
    """How far the prompt agrees with a chat of its system messages and an empty user message; 0 if there is none.

    That counts only where the last message is the user's.
    """
    systems = next((number for number, one in enumerate(messages) if one["role"] != "system"), len(messages))
    if not systems or messages[-1]["role"] != "user":
        return 0
    ids = vocabulary.encode_chat(messages[:systems], generation_prompt=False)
    rest = vocabulary.encode_chat([{"role": "user", "content": ""}], generation_prompt=False)
    shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(rest, prompt_ids[len(ids) :], strict=False))
    return len(ids) + sum(1 for _ in shared)


def _messages(messages: Sequence[Body]) -> list[dict[str, str]]:
    if not messages:
        raise Unserved("Cannot apply chat template to an empty conversation. Provide at least one message.")
    return [{"role": _role(message), "content": _content(message)} for message in messages]


def _role(message: Body) -> str:
    if "role" not in message:
        raise Unserved("'dict object' has no attribute 'role'")
    return str(message["role"])


def _content(message: Body) -> str:
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) and part.get("type") == "text" and "text" in part for part in content):
            raise Unserved("Only 'text' content type is supported.")
        return "".join(part["text"] for part in content)
    if content is not None and not isinstance(content, str):
        raise Unserved(f'can only concatenate str (not "{type(content).__name__}") to str')
    return content or ""
