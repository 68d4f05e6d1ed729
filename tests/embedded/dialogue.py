"""Talking to the embedded server in tests."""

from __future__ import annotations

import itertools
import random
from typing import Any

import requests

from harness.embedded.server import RunningServer
from harness.workload.words import CANDIDATES

seeds = itertools.count()


def fresh_words(count: int) -> str:
    """Words of one token each after the opener "#", in an order that no other test has sent."""
    return "#" + "".join(f" {word}" for word in random.Random(next(seeds)).choices(CANDIDATES, k=count))


def post(server: RunningServer, path: str, body: dict[str, Any]) -> Any:
    response = requests.post(server.url.removesuffix("/v1") + path, json=body, timeout=60)
    response.raise_for_status()
    return response.json()


def chat(server: RunningServer, *contents: str, output_tokens: int = 4) -> Any:
    """The answer to a chat in which user and assistant take turns, the user first and last."""
    messages = messages_of(*contents)
    return post(server, "/v1/chat/completions", {"messages": messages, "max_tokens": output_tokens, "temperature": 0})


def messages_of(*contents: str) -> list[dict[str, str]]:
    roles = itertools.cycle(("user", "assistant"))
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


def prompt_ids(server: RunningServer, *contents: str) -> list[int]:
    """The token ids that the server makes of such a chat."""
    prompt = post(server, "/apply-template", {"messages": messages_of(*contents)})["prompt"]
    return token_ids(server, prompt, parse_special=True)


def token_ids(server: RunningServer, text: str, *, parse_special: bool = False) -> list[int]:
    ids: list[int] = post(server, "/tokenize", {"content": text, "parse_special": parse_special})["tokens"]
    return ids


def common(first: list[int], second: list[int]) -> int:
    """Length of the common prefix."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def cached_tokens(answer: Any) -> int | None:
    cached: int | None = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    return cached


def text_of(answer: Any) -> str:
    text: str = answer["choices"][0]["message"]["content"]
    return text
