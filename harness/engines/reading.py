"""What one JSON object of a response says, in the dialects of vLLM, SGLang, llama.cpp and mlx-lm.

All of them speak OpenAI's chat and completions format, streamed (`delta`, `text`) and plain (`message`, `text`), and
each adds or leaves out some fields. One reader understands them all, so it reads servers that nobody has met, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from harness.engines.base import Event, Timings, Usage

_NOTHING: Mapping[str, Any] = {}
_MORE_THAN_CHOICES = frozenset({"usage", "timings", "metrics", "error"})


def read_event(body: Mapping[str, Any]) -> Event:
    """Read a stream event or a whole plain body. Of several choices the first counts: the harness asks for one."""
    text, is_output, token_ids, finish_reason = "", False, None, None
    choices = body.get("choices")
    if choices and isinstance(choices, list) and isinstance(choices[0], dict):
        choice = choices[0]
        # Completions have their text in the choice itself, chats one level down.
        part = choice.get("delta") or choice.get("message") or choice
        content = part.get("content") or choice.get("text")
        if isinstance(content, str):
            text = content
        token_ids = choice.get("token_ids")
        finish_reason = choice.get("finish_reason")
        if (
            text
            and not token_ids
            and finish_reason is None
            # SGLang's completions have "usage": null in every event.
            and (_MORE_THAN_CHOICES.isdisjoint(body) or all(body.get(name) is None for name in _MORE_THAN_CHOICES))
        ):
            return _text_event(text)
        is_output = bool(
            text
            or token_ids
            or part.get("reasoning")  # vLLM, mlx-lm
            or part.get("reasoning_content")  # SGLang, llama.cpp, vLLM before late 2025
            or _calls_a_tool(part.get("tool_calls"))
        )
    return Event(
        text=text,
        is_output=is_output,
        tokens=len(token_ids) if token_ids else None,
        finish_reason=finish_reason,
        usage=_usage(body),
        timings=_timings(body),
        error=_error(body),
    )


@lru_cache(maxsize=16_384)
def _text_event(text: str) -> Event:
    """Most events of a stream are a piece of text and nothing else, and pieces repeat: they are made once."""
    return Event(text=text, is_output=True)


def _calls_a_tool(calls: object) -> bool:
    """Whether some call brings a piece of its name or of its arguments: an index, an id or "" alone is no output."""
    functions = [_mapping(_mapping(call).get("function")) for call in calls] if isinstance(calls, list) else []
    return any(function.get("name") or function.get("arguments") for function in functions)


def _usage(body: Mapping[str, Any]) -> Usage | None:
    """Counts of `usage`, and what it leaves out.

    That is in llama.cpp's `timings`, where cache_n + prompt_n is the prompt, or in SGLang's `sglext` (sent to those who
    ask with return_cached_tokens_details), where the cached tokens stand by the tier that held them.
    """
    usage = _mapping(body.get("usage"))
    timings = _mapping(body.get("timings"))
    cached = _mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    if cached is None:
        cached = timings.get("cache_n")
    if cached is None:
        tiers = _mapping(_mapping(body.get("sglext")).get("cached_tokens_details"))
        counts = [count for tier in ("device", "host", "storage") if (count := tiers.get(tier)) is not None]
        cached = sum(counts) if counts else None
    prompt = usage.get("prompt_tokens")
    if prompt is None and "cache_n" in timings and "prompt_n" in timings:
        prompt = timings["cache_n"] + timings["prompt_n"]
    output = usage.get("completion_tokens")
    if output is None:
        output = timings.get("predicted_n")
    if prompt is None and output is None and cached is None:
        return None
    return Usage(prompt_tokens=prompt, output_tokens=output, cached_tokens=cached)


def _timings(body: Mapping[str, Any]) -> Timings | None:
    """llama.cpp's `timings`, or vLLM's `metrics` (--enable-per-request-metrics).

    vLLM counts its time to first token from when the request was scheduled, so it is the prefill without the queue, and
    its generation time from the first output token to the last.
    """
    timings = _mapping(body.get("timings"))
    if timings:
        return Timings(prefill_ms=timings.get("prompt_ms"), decode_ms=timings.get("predicted_ms"))
    metrics = _mapping(body.get("metrics"))
    if metrics:
        return Timings(
            queue_ms=metrics.get("queue_time_ms"),
            prefill_ms=metrics.get("time_to_first_token_ms"),
            decode_ms=metrics.get("generation_time_ms"),
        )
    return None


def _error(body: Mapping[str, Any]) -> str | None:
    """The message of {"error": {"message": ...}}, {"object": "error", "message": ...} or {"error": "..."}."""
    error = body.get("error")
    if error is None:
        if body.get("object") != "error":
            return None
        error = body
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _NOTHING
