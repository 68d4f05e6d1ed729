"""What every engine adapter offers, and the plain values that it speaks in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

ChatMessages = Sequence[Mapping[str, str]]
"""OpenAI chat messages: [{"role": ..., "content": ...}, ...]."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the engine reported them for one request; None is "not reported", 0 is "none"."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Times that the engine itself reports for one request, in ms."""

    queue_ms: float | None = None
    prefill_ms: float | None = None
    decode_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """What one JSON object of a response says: a stream event, or the whole body of a plain response."""

    text: str = ""
    """Answer text (choices[0] content or text) in this event."""
    is_output: bool = False
    """It carries output: non-empty content, reasoning, tool call or token ids. A role alone is not output."""
    tokens: int | None = None
    """Number of output tokens in this event where the engine says so (token ids), else None."""
    finish_reason: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    error: str | None = None
    """The message of an error object, in any of the engines' shapes."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who answers. None: the engine does not tell."""

    engine: str
    model: str
    version: str | None = None
    context_tokens: int | None = None
    """Longest prompt + output of one request."""
    capacity_tokens: int | None = None
    """KV capacity of the whole server."""
    granularity_tokens: int | None = None
    """Tokens of the block or page that a hit is rounded down to; 1 for token-exact matching."""
    slots: int | None = None
    prefix_caching: bool | None = None
    kv_dtype: str | None = None
    template_fingerprint: str | None = None
    tokenizer_fingerprint: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HitCounters:
    """How to get a token hit rate from the deltas of an engine's counters: cached / prompt.

    `prompt` counts all prompt tokens if `prompt_includes_cached`, else only those that were computed.
    Names are alternatives over the versions of the engine, best first, as they stand on the metrics page.
    """

    cached: tuple[str, ...]
    prompt: tuple[str, ...]
    prompt_includes_cached: bool


@dataclass(frozen=True, slots=True)
class ResetOutcome:
    """What a cache reset did. `complete` is True only if nothing can be hit afterwards."""

    complete: bool
    message: str


class Engine(Protocol):
    """An adapter, bound to one target.

    Control calls (everything but `chat_payload` and `read_event`) go over plain HTTP outside the measured load.
    They raise `harness.errors.TargetError` with one clear sentence.
    """

    name: str
    hit_counters: HitCounters | None
    """None where the engine has no such counters."""
    request_headers: Mapping[str, str]
    """Headers that suit the engine, sent with every measured request."""

    def identify(self) -> Identity: ...

    def chat_payload(self, messages: ChatMessages, output_tokens: int) -> dict[str, Any]:
        """Body of a streaming chat request; of exactly `output_tokens` tokens where the engine can be made to."""
        ...

    def read_event(self, body: Mapping[str, Any]) -> Event: ...

    def count_text(self, text: str) -> int | None:
        """Tokens of `text` by the engine's own tokeniser, without special tokens; None if it offers none."""
        ...

    def count_chat(self, messages: ChatMessages) -> int:
        """Prompt tokens of a chat, template included, generation prompt included."""
        ...

    def chat_tokens(self, messages: ChatMessages) -> list[int] | None:
        """The token ids of the same prompt; None if the engine does not show them."""
        ...

    def is_idle(self, metrics: Mapping[str, float]) -> bool | None:
        """Whether a scrape (name -> sum over labels) shows no request running or queued; None: it does not tell."""
        ...

    def reset_cache(self) -> ResetOutcome: ...


Status = Literal["ok", "http_error", "stream_error", "truncated", "timeout", "cancelled", "refused", "connect_error"]
