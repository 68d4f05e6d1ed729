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
    """Who answers. None: the engine does not tell, and `unknown` says why."""

    engine: str
    model: str
    """The name that requests ask for."""
    version: str | None = None
    build: str | None = None
    model_path: str | None = None
    """What the server loaded under the name of `model`: a folder, a file or a name on a hub."""
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
    adapter: str | None = None
    """Name of the LoRA adapter that the model's name stands for."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What else the engine tells: flags that bear on caching, sizes."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Name of a field, or of a flag that bears on caching -> why it is not known, and the flag that would tell it."""
    by_hand: tuple[str, ...] = ()
    """Fields that the engine does not tell, and that stand in the target file."""


Meaning = Literal[
    "prompt_tokens",
    "computed_prompt_tokens",
    "cached_prompt_tokens",
    "external_cached_tokens",
    "generated_tokens",
    "running_requests",
    "waiting_requests",
    "kv_usage",
    "preemptions",
    "evicted_tokens",
]
"""What a metric tells, whatever the engine calls it. The token hit rate of an engine's counters is
cached_prompt_tokens / prompt_tokens, or cached / (cached + computed_prompt_tokens) where the engine has only that."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One thing that an engine's metrics page tells."""

    meaning: Meaning
    names: tuple[str, ...]
    """Alternatives over the versions of the engine, newest first, each as it stands on the page. The first one that
    the page has counts; it is summed over its label sets."""
    kind: Literal["counter", "gauge"]
    counts: str
    """What exactly is counted and when, in words that follow the name."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only series with these labels; empty: all."""
    absent_is_zero: bool = False
    """The engine makes the series at its first event: while the page has none, the count is 0."""
    digits: int | None = None
    """Significant digits to which the page rounds a value; None: it shows all."""


Need = Literal["caching", "cached_tokens", "metrics", "reset"]
"""What a server may have been started without."""


@dataclass(frozen=True, slots=True)
class ResetOutcome:
    """What a cache reset did. `complete` is True only if nothing can be hit afterwards."""

    complete: bool
    message: str


class Engine(Protocol):
    """An adapter, bound to one target.

    Control calls (everything but the payloads and `read_event`) go over plain HTTP outside the measured load.
    They raise `harness.errors.TargetError` with one clear sentence.
    """

    name: str
    metrics: tuple[Metric, ...]
    """What its metrics page tells; empty where it has none."""
    advice: Mapping[Need, str]
    """How to start the server so that it offers what it lacks, as a clause such as "start vLLM with --flag"."""
    takes_token_ids: bool
    """Prompts may be token ids (`ids_payload`)."""
    takes_cache_salt: bool
    """Requests may carry a cache salt: only those with the same one share a cache."""
    pins_slots: bool
    """Requests may name the slot that serves them."""
    forces_length: bool
    """Answers have exactly the length asked for, as long as the context has room."""
    request_headers: Mapping[str, str]
    """Headers that suit the engine, sent with every measured request."""

    def identify(self) -> Identity: ...

    def chat_payload(
        self, messages: ChatMessages, output_tokens: int, *, cache_salt: str | None = None, slot: int | None = None
    ) -> dict[str, Any]:
        """Body of a streaming POST to /chat/completions, with usage at its end, for at most `output_tokens` tokens.

        Raises ValueError for a salt or slot that the engine does not take.
        """
        ...

    def ids_payload(
        self, prompt: Sequence[int], output_tokens: int, *, cache_salt: str | None = None, slot: int | None = None
    ) -> dict[str, Any]:
        """The same for a POST to /completions whose prompt is token ids. Raises ValueError if it takes none."""
        ...

    def read_event(self, body: Mapping[str, Any]) -> Event: ...

    def count_text(self, text: str) -> int | None:
        """Tokens of `text` by the engine's own tokeniser, without special tokens; None if it offers none."""
        ...

    def count_chat(self, messages: ChatMessages) -> int:
        """Prompt tokens of a chat, template included, generation prompt included."""
        ...

    def chat_tokens(self, messages: ChatMessages, tools: Sequence[Mapping[str, Any]] = ()) -> list[int] | None:
        """The token ids of the same prompt, or of one with tools; None if the engine does not show them."""
        ...

    def is_idle(self, metrics: Mapping[str, float]) -> bool | None:
        """Whether a scrape (name -> sum over labels) shows no request running or queued; None: it does not tell."""
        ...

    def reset_cache(self) -> ResetOutcome: ...


Status = Literal["ok", "http_error", "stream_error", "truncated", "timeout", "cancelled", "refused", "connect_error"]
