"""JSON Lines of chat requests as the OpenAI API takes them, each with a time if it is known."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from harness.cache.base import Item, Prompt
from harness.traces.clock import Clock
from harness.traces.entry import (
    BadEntry,
    Entry,
    check_keys,
    entries_of,
    optional_seconds,
    optional_text,
    shown,
    text,
    whole,
)
from harness.traces.lines import read_lines
from harness.traces.request import Trace, TraceRequest
from harness.traces.token_stream import (
    ESTIMATED_BYTES,
    TOKEN_BYTES,
    ChatText,
    TextTokens,
    as_text,
    counted_tokens,
    estimated_tokens,
    stream_of,
)

BLOCK_TOKENS = 16
_MS_PER_S = 1000
_LENGTHS = ("output_length", "max_completion_tokens", "max_tokens")
"""Where the length of the answer is taken from: the first that is there."""
_OWN = ("timestamp", "session_id", "model", "tools", *_LENGTHS)
_OF_THE_API = (
    *("stream", "stream_options", "temperature", "top_p", "n", "stop", "seed", "logit_bias", "logprobs"),
    *("top_logprobs", "presence_penalty", "frequency_penalty", "response_format", "tool_choice", "user", "store"),
    *("parallel_tool_calls", "reasoning_effort", "service_tier", "metadata", "verbosity", "prompt_cache_key"),
    *("safety_identifier", "chat_template_kwargs"),
)
"""Keys without a part in the prompt's length or identity as it is told here."""


def read_messages(
    path: Path, block_tokens: int = BLOCK_TOKENS, tokenizer: Path | None = None, skip_bad: bool = False
) -> Trace:
    """The chats in `path`, cut into blocks of `block_tokens`. Equal blocks of one model are one item.

    Lengths are counted by the tokenizer.json at `tokenizer`, or estimated (`harness.traces.token_stream`). Times may
    have any origin; they are counted from the first. Raises InputError.
    """
    text_tokens = estimated_tokens() if tokenizer is None else counted_tokens(tokenizer)
    chats = _Chats(block_tokens, text_tokens)
    requests, skipped = read_lines(path, chats.request, skip_bad)
    how = (
        f"Lengths are estimated: a token for every {ESTIMATED_BYTES} bytes of a message; --tokenizer counts them."
        if tokenizer is None
        else f"Lengths are counted by {tokenizer.name}; the chat template's own tokens are estimated."
    )
    return Trace(
        path.name, f"chat messages, cut into blocks of {block_tokens} tokens", block_tokens, requests, skipped, (how,)
    )


class _Chats:
    """Makes requests of the lines, which must come in the order of time."""

    def __init__(self, block_tokens: int, text_tokens: TextTokens) -> None:
        self.block_tokens = block_tokens
        self.text_tokens = text_tokens
        self.clock = Clock("timestamp")
        self.first_s: float | None = None
        self.items: dict[tuple[str | None, bytes], Item] = {}
        """(model, block) -> its item: one object, however often it occurs."""

    def request(self, value: object) -> TraceRequest:
        entry = check_keys(value, ("messages",), (*_OWN, *_OF_THE_API))
        output_tokens = next((whole(entry, key, 1) for key in _LENGTHS if entry.get(key) is not None), None)
        session, model = optional_text(entry, "session_id"), optional_text(entry, "model")
        stream = stream_of(_chat(entry), self.text_tokens)
        time_s = self.clock.passed_if_known(optional_seconds(entry, "timestamp", _MS_PER_S))
        if time_s is not None:
            self.first_s = time_s if self.first_s is None else self.first_s
            time_s -= self.first_s
        return TraceRequest(time_s, self._prompt(stream, model), output_tokens, session)

    def _prompt(self, stream: bytes, model: str | None) -> Prompt:
        step = self.block_tokens * TOKEN_BYTES
        return [self._item(stream[start : start + step], model) for start in range(0, len(stream), step)]

    def _item(self, block: bytes, model: str | None) -> Item:
        """Its id is the same in every file: the first 8 bytes of sha-256 over model and block, as a signed number."""
        item = self.items.get((model, block))
        if item is None:
            digest = sha256(f"{model or ''}\0".encode() + block).digest()
            item = int.from_bytes(digest[:8], "big", signed=True), len(block) // TOKEN_BYTES
            self.items[model, block] = item
        return item


def _chat(entry: Entry) -> list[ChatText]:
    """Tools first, as templates show them."""
    messages = entries_of(entry, "messages")
    if not messages:
        raise BadEntry("messages is empty")
    chat = [_message(message, f"messages[{number}]") for number, message in enumerate(messages)]
    if entry.get("tools"):
        chat.insert(0, ChatText("tools", as_text(entry["tools"])))
    return chat


def _message(value: object, place: str) -> ChatText:
    if not isinstance(value, dict):
        raise BadEntry(f"{place} is {shown(value)}; expected an object with role and content")
    if "role" not in value:
        raise BadEntry(f"the key role is missing in {place}")
    calls = value.get("tool_calls")
    return ChatText(text(value, "role"), _content(value.get("content"), place) + (as_text(calls) if calls else ""))


def _content(content: object, place: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    return "".join(_part(part, place) for part in parts)


def _part(part: object, place: str) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    raise BadEntry(f"{place}.content holds something that is not text, whose length cannot be told")
