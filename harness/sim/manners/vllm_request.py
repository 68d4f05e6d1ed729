"""What is asked of vLLM: a chat or completion body, checked as it checks it."""

from __future__ import annotations

import re
import secrets
import time

from harness.sim.manners.ending import set_ending
from harness.sim.manners.engine import Engine
from harness.sim.manners.openai import Asked, Body, ChatBody, CompletionBody, prompt_ids
from harness.sim.manners.vllm_errors import bad, no_such_model, not_simulated, too_long
from harness.sim.options import SimOptions

_SALT = re.compile(r"[^@/\\\0]{1,128}")


def check(body: Body, options: SimOptions) -> None:
    """What is found out before the prompt is looked at. Raises Refused."""
    if body.stream_options is not None and not body.stream:
        raise bad("Stream options can only be defined when `stream=True`.", "stream_options")
    if body.cache_salt == "":
        raise bad("Parameter 'cache_salt' must be a non-empty string if provided.", "cache_salt")
    if body.cache_salt is not None and _SALT.fullmatch(body.cache_salt) is None:
        raise bad("Parameter 'cache_salt' must have at most 128 characters, and none of @, / and \\.", "cache_salt")
    if body.model not in (None, options.alias):
        raise no_such_model(str(body.model), options.alias)
    if body.n != 1:
        raise not_simulated("several answers to one request")
    if body.logprobs:
        raise not_simulated("logprobs")
    if body.temperature is not None and body.temperature < 0:
        raise bad(f"temperature must be non-negative, got {body.temperature}.", "temperature", body.temperature)


def asked_of(body: ChatBody | CompletionBody, request_id: str | None, engine: Engine) -> Asked:
    """`request_id`: the header X-Request-Id. Raises Refused."""
    check(body, engine.options)
    ids = prompt_ids(body, engine.vocabulary)
    if ids is None:
        raise not_simulated("echo, an empty prompt, several prompts in one request, or tokens out of vocabulary")
    most = answer_tokens(body, len(ids), engine.options.context_tokens)
    kind = "chatcmpl" if isinstance(body, ChatBody) else "cmpl"
    asked = Asked(
        prompt_ids=ids,
        max_tokens=most,
        namespace=body.cache_salt or "",
        id=f"{kind}-{request_id or secrets.token_hex(8)}",
        created_s=int(time.time()),
        model=engine.options.alias,
        streams=body.stream,
        asked_tokens=most,
    )
    set_ending(asked, body, engine)
    return asked


def answer_tokens(body: Body, prompt_tokens: int, context_tokens: int) -> int:
    """The answer's greatest length: what was asked for, or what the context has room for. Raises Refused."""
    most = body.most_tokens
    if most is not None and most < 1:
        raise bad(f"max_tokens must be at least 1, got {most}.", "max_tokens", most)
    if most is not None and most > context_tokens:
        problem = f"max_tokens={most} cannot be greater than max_model_len={context_tokens}."
        raise bad(f"{problem} Please request fewer output tokens.", "max_tokens", most)
    if prompt_tokens + (most or 1) > context_tokens:
        raise too_long(prompt_tokens, most or 1, context_tokens)
    return context_tokens - prompt_tokens if most is None else most
