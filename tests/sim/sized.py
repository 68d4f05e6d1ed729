"""Prompts of the tiny vocabulary with as many tokens, and as many in common, as the recorded ones had.

The recordings were made with another vocabulary of words, so texts differ, but every count can be the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.workload.words import CANDIDATES
from tests.contract.subject import Prompt, token_ids
from tests.sim.exchange import FIXTURES

BEFORE_SYSTEM, BEFORE_QUESTION, AFTER_QUESTION = 6, 6, 8
"""Tokens of the template around the messages of a chat."""
BEFORE_LONE_QUESTION = 4


def words(count: int, first: int = 0) -> str:
    """That many tokens: each word with the space before it is one."""
    return "".join(f" {CANDIDATES[(first + number) % len(CANDIDATES)]}" for number in range(count))


def chat(total: int, before_question: int, question: str, system: int = 0) -> list[dict[str, str]]:
    """A chat of `total` tokens whose question begins after `before_question` ones.

    `question` is filled up to the total with words. The system message begins with "#", so that 7 tokens are those of
    every other chat; chats of the same number `system` agree in all of it.
    """
    content = "#" + words(before_question - BEFORE_SYSTEM - 1 - BEFORE_QUESTION, system)
    missing = total - before_question - len(token_ids(question)) - AFTER_QUESTION
    prompt = Prompt((content, question + words(missing, 300)))
    assert len(prompt.ids) == total
    return prompt.messages


def lone_question(total: int) -> list[dict[str, str]]:
    """A chat of one message."""
    content = words(total - BEFORE_LONE_QUESTION - AFTER_QUESTION)
    return [{"role": "user", "content": content}]


def request(name: str, messages: Sequence[dict[str, str]] | None = None, prompt: str | None = None) -> dict[str, Any]:
    """The recorded request `name`, with a prompt where the file has none."""
    body: dict[str, Any] = json.loads((FIXTURES / f"{name}.request.json").read_text())
    if messages is not None:
        body["messages"] = list(messages)
    return body if prompt is None else {**body, "prompt": prompt}
