"""How labelled prompts are written down: a function for each set of them, with the faults that are to be found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lint.texts import QUESTIONS, chat

Requests = list[dict[str, Any]]
Labelled = dict[str, tuple[set[str], Requests]]
"""Name -> (the kinds that are to be found, the requests)."""
Build = Callable[[], Requests]


def labels(into: Labelled) -> Callable[..., Callable[[Build], Build]]:
    """A decorator that takes kinds, and keeps what a function makes under the function's name."""

    def fault(*kinds: str) -> Callable[[Build], Build]:
        def keep(build: Build) -> Build:
            into[build.__name__] = (set(kinds), build())
            return build

        return keep

    return fault


def siblings(system: Callable[[int], Any], count: int = 4, **more: Any) -> Requests:
    """Different questions after a system message that depends on the number of the request."""
    return [chat(system(number), QUESTIONS[number], **more) for number in range(count)]
