"""Requests to a real server, and what they reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import requests

TEXT = "# " + " ".join(["the library opens at nine in the morning"] * 20)


@dataclass(frozen=True, slots=True)
class Reported:
    """Tokens in the usage of all answers."""

    cached: int
    prompt: int
    output: int


def chat(url: str, questions: list[str]) -> Reported:
    """One chat for each question to the server at `url` (with its /v1), one after the other."""
    cached = prompt = output = 0
    for question in questions:
        messages = [{"role": "system", "content": TEXT}, {"role": "user", "content": question}]
        body: dict[str, Any] = {"model": "tiny", "messages": messages, "max_tokens": 2}
        usage = requests.post(f"{url}/chat/completions", json=body, timeout=60).json()["usage"]
        prompt += usage["prompt_tokens"]
        output += usage["completion_tokens"]
        cached += usage["prompt_tokens_details"]["cached_tokens"]
    return Reported(cached, prompt, output)
