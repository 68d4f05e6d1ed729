"""What is asked of llama.cpp's server: the body of a chat or completion, read as it reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from harness.sim.generation import Generation
from harness.sim.manners.llama_cpp_refusal import Refusal, missing, not_supported, wrong_type
from harness.sim.vocabulary import Vocabulary, render

Kind = Literal["chat", "text", "native"]
"""OpenAI's chats, OpenAI's completions, and `/completion`, which is llama.cpp's own."""
Body = Mapping[str, Any]

_FLAGS = ("stream", "ignore_eos", "cache_prompt", "timings_per_token", "return_progress", "return_tokens")
_LENGTHS = ("n_predict", "max_completion_tokens", "max_tokens")
"""The first one that is there counts."""
_GREATEST = 2**31 - 1


@dataclass(slots=True, eq=False, kw_only=True)
class Asked(Generation):
    """A request with what its answer must say beside tokens."""

    kind: Kind
    body: Body
    task: int = -1
    """Its number among all requests."""
    told_s: float = 0.0
    """The end of the latest step that gave it something."""
    pieces: Sequence[str] | None = None
    """What the stream says at each token, where stop strings hold text back; None: each token as it is."""
    stopping_word: str | None = None
    """The stop string at which the answer ends."""
    said: str | None = None
    """The whole answer up to it; None: all tokens."""
    flags: Mapping[str, bool] = field(default_factory=dict)

    @property
    def streams(self) -> bool:
        return self.flags["stream"]

    @property
    def wants_usage(self) -> bool:
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @property
    def limit(self) -> int:
        """The length of the answer that was asked for; -1: as long as the context has room."""
        return limit_of(self.body)

    @property
    def stops(self) -> list[str]:
        stop = self.body.get("stop")
        listed = stop if isinstance(stop, list) else [stop]
        return [one for one in listed if isinstance(one, str) and one]


def read_chat(body: Any, vocabulary: Vocabulary, caches: bool) -> Asked:
    """`caches`: whether the cache is used unless the body says otherwise. Raises Refusal."""
    messages = messages_in(body)
    asked = _read(body, "chat", caches)
    if asked.body.get("logprobs"):
        raise not_supported("logprobs are not simulated")
    asked.prompt_ids = chat_ids(messages, vocabulary)
    return asked


def read_completion(body: Any, kind: Literal["text", "native"], vocabulary: Vocabulary, caches: bool) -> Asked:
    """`caches`: as for a chat. Raises Refusal."""
    if not isinstance(body, dict) or "prompt" not in body:
        raise missing("prompt")
    asked = _read(body, kind, caches)
    if body.get("logprobs") or body.get("n_probs"):
        raise not_supported("logprobs are not simulated")
    asked.prompt_ids = prompt_ids(body["prompt"], vocabulary)
    return asked


def _read(body: Body, kind: Kind, caches: bool) -> Asked:
    flags = {name: _flag(body, name) for name in _FLAGS if body.get(name) is not None}
    flags = {**dict.fromkeys(_FLAGS, False), "cache_prompt": caches, **flags}
    for name in _LENGTHS:
        if (limit := body.get(name)) is not None:
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                raise wrong_type(limit, "number", name)
            if not -1 <= limit <= _GREATEST:
                raise Refusal(f"Field '{name}': Value must be between -1 <= value <= {_GREATEST}, but got {limit:g}")
    slot = body.get("id_slot")
    return Asked(
        prompt_ids=(),
        max_tokens=1,
        kind=kind,
        body=body,
        flags=flags,
        reads_cache=flags["cache_prompt"],
        slot=slot if isinstance(slot, int) and slot >= 0 else None,
    )


def limit_of(body: Body) -> int:
    """-1: none. An answer has one token at least, also if none is asked for."""
    limit = next((body[name] for name in _LENGTHS if body.get(name) is not None), -1)
    return max(1, int(limit)) if limit >= 0 else -1


def _flag(body: Body, name: str) -> bool:
    value = body[name]
    if not isinstance(value, bool):
        raise wrong_type(value, "boolean", name)
    return value


def messages_in(body: Any) -> list[dict[str, str]]:
    """The messages with their contents as text. Raises Refusal."""
    if not isinstance(body, dict) or "messages" not in body:
        raise Refusal("'messages' is required")
    if not isinstance(body["messages"], list):
        raise Refusal("Expected 'messages' to be an array")
    contents = [_content(message) for message in body["messages"]]
    return [
        {"role": _role(message), "content": content}
        for message, content in zip(body["messages"], contents, strict=True)
    ]


def _role(message: Any) -> str:
    role = message.get("role", "") if isinstance(message, dict) else ""
    if not isinstance(role, str):
        raise _unparsed(wrong_type(role, "string"))
    return role


def _content(message: Any) -> str:
    if not isinstance(message, dict) or ("content" not in message and message.get("role") != "assistant"):
        raise Refusal("All non-assistant messages must contain 'content'")
    if "content" not in message:
        raise Refusal("Assistant message must contain either 'content' or 'tool_calls'!")
    if "role" not in message:
        told = orjson.dumps(message).decode()
        raise Refusal(f"Failed to parse messages: Missing 'role' in message: {told}", "server_error", 500)
    content = message["content"]
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    if content is not None and not isinstance(content, str):
        raise Refusal("Expected 'content' to be a string or an array")
    return content or ""


def _part(part: Any) -> str:
    if not isinstance(part, dict) or part.get("type") != "text":
        raise Refusal("unsupported content[].type")
    if "text" not in part:
        raise _unparsed(missing("text"))
    return str(part["text"])


def _unparsed(refusal: Refusal) -> Refusal:
    return Refusal(f"Failed to parse messages: {refusal}", "server_error", 500)


def chat_text(messages: Sequence[Mapping[str, str]], generation_prompt: bool = True) -> str:
    """The rendered chat. An answer that was begun, as the last message, is to be gone on with."""
    if messages and messages[-1]["role"] == "assistant" and generation_prompt:
        return render(messages[:-1]) + messages[-1]["content"]
    return render(messages, generation_prompt)


def chat_ids(messages: Sequence[Mapping[str, str]], vocabulary: Vocabulary) -> Sequence[int]:
    if messages and messages[-1]["role"] == "assistant":
        return vocabulary.encode(chat_text(messages))
    return vocabulary.encode_chat(messages)


def prompt_ids(prompt: Any, vocabulary: Vocabulary) -> Sequence[int]:
    """Of a text, of token ids, or of a list of both. Raises Refusal."""
    if isinstance(prompt, str):
        prompt = [prompt]
    elif not isinstance(prompt, list) or any(type(part) not in (str, int) for part in prompt):
        raise Refusal(
            '"prompt" elements must be a string, a list of tokens, a JSON object containing a prompt string, or a list '
            "of mixed strings & tokens."
        )
    if len(prompt) > 1 and all(isinstance(part, str) for part in prompt):
        raise not_supported("several prompts in one request are not simulated")
    ids = mixed_ids(prompt, vocabulary)
    if not ids:
        raise Refusal('"prompt" must not be empty')
    if any(not 0 <= token < len(vocabulary) for token in ids):
        raise Refusal("Prompt contains invalid tokens")
    return ids


def mixed_ids(parts: Sequence[Any], vocabulary: Vocabulary) -> list[int]:
    """Of texts and token ids. Raises Refusal for what is neither."""
    ids: list[int] = []
    for part in parts:
        ids += vocabulary.encode(part) if isinstance(part, str) else [whole_number(part)]
    return ids


def whole_number(value: Any) -> int:
    """As the server takes a number for a token id: true is 1, a fraction is cut off. Raises Refusal."""
    if not isinstance(value, int | float):
        raise wrong_type(value, "number")
    return int(value)
