"""What is looked for, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "timestamp-first",
    "request-id-first",
    "tools-shuffled",
    "keys-shuffled",
    "preamble-first",
    "passages-reranked",
    "whitespace-changed",
]
"""Named as the arrangement faults that a scenario can have, where there is one."""
KINDS: tuple[Kind, ...] = get_args(Kind)
FIXABLE: tuple[Kind, ...] = ("keys-shuffled", "tools-shuffled", "whitespace-changed")
"""What can be put right without changing what a prompt means."""


class Wording(NamedTuple):
    """`title` follows a count of requests; `advice` is a sentence or two."""

    title: str
    advice: str


WORDING: Mapping[Kind, Wording] = {
    "timestamp-first": Wording(
        "a time stands before text that is the same",
        "Put the time at the end of the last message, or round it so that it seldom changes.",
    ),
    "request-id-first": Wording(
        "an id or a number stands before text that is the same",
        "Leave the id out if the model does not need it (send it as a header); else put it at the end of the last "
        "message.",
    ),
    "tools-shuffled": Wording(
        "the same tools come in another order",
        "Sort the tools by name before each request.",
    ),
    "keys-shuffled": Wording(
        "the same JSON has its keys in another order",
        "Write JSON with sorted keys, or always from the same structure.",
    ),
    "preamble-first": Wording(
        "text that differs stands before text that is the same",
        "Put what all requests share first, then what belongs to a user, then the question.",
    ),
    "passages-reranked": Wording(
        "the same passages come in another order",
        "Keep passages in the order in which they were first sent, and add new ones behind them; or sort them by "
        "their id.",
    ),
    "whitespace-changed": Wording(
        "the same words have other white space between or behind them",
        "Make the text in one place, and strip and wrap it there only.",
    ),
}
