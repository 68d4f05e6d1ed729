"""What is asked of SGLang: a chat or completion body, checked as it checks it."""

from __future__ import annotations

import secrets
import time
from typing import Any

import orjson

from harness.sim.manners.ending import set_ending
from harness.sim.manners.engine import Engine
from harness.sim.manners.openai import Asked, Body, ChatBody, CompletionBody, prompt_ids
from harness.sim.manners.sglang_errors import bad, not_simulated, too_long


def loads_chat(body: bytes) -> Any:
    """SGLang sets a field before it looks at the others, and shows it in what it says of them."""
    value = orjson.loads(body)
    return {**value, "tool_choice": value.get("tool_choice", "none")} if isinstance(value, dict) else value


def asked_of(body: ChatBody | CompletionBody, engine: Engine) -> Asked:
    """Raises Refused. Any name of a model is taken for that of the one that is served."""
    options = engine.options
    if body.n != 1:
        raise not_simulated("several answers to one request")
    if body.logprobs:
        raise not_simulated("logprobs")
    if body.temperature is not None and not 0 <= body.temperature < float("inf"):
        raise bad(f"temperature must be a non-negative finite number, got {body.temperature}.")
    most = body.most_tokens
    if isinstance(body, ChatBody) and most is not None and most > options.context_tokens:
        raise bad(
            f"max_completion_tokens is too large: {most}.This model supports at most {options.context_tokens} "
            "completion tokens."
        )
    ids = prompt_ids(body, engine.vocabulary)
    if ids is None:
        raise not_simulated("echo, an empty prompt, several prompts in one request, or tokens out of vocabulary")
    if len(ids) + max(1, most or 0) > options.context_tokens:
        raise too_long(len(ids), most or 0, options.context_tokens)
    asked_tokens = options.context_tokens - len(ids) if most is None else most
    asked = Asked(
        prompt_ids=ids,
        max_tokens=max(1, asked_tokens),
        namespace=_namespace(body),
        id=secrets.token_hex(16),
        created_s=int(time.time()),
        model=options.alias if body.model is None else body.model,
        streams=body.stream,
        asked_tokens=asked_tokens,
    )
    set_ending(asked, body, engine)
    return asked


def _namespace(body: Body) -> str:
    """A salt and a key are two ways to keep apart; empty ones are none."""
    parts = (body.cache_salt or "", body.extra_key or "")
    return "\0".join(parts) if any(parts) else ""
