"""Seeded sessions of segments with real texts: what a model sees as items, a twin sees as the words of the text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from harness.cache.base import Prompt
from harness.cache.prompt import items
from harness.workload.content import content_id, words_text

LEXICON = 16
"""Few words, so that texts often share their first by accident."""
_NAMES = tuple(str(number) for number in range(LEXICON))

Segments = list[tuple[int, int]]
"""(content id, tokens) pairs."""


@dataclass(frozen=True)
class Asked:
    prompt: Segments
    output: Segments


def as_items(segments: Segments) -> Prompt:
    return items([identity for identity, _ in segments], [length for _, length in segments], LEXICON)


def as_words(segments: Segments) -> tuple[int, ...]:
    """The text, a number for each word."""
    return tuple(int(word) for identity, length in segments for word in words_text(_NAMES, identity, length).split())


def asked(seed: int, requests: int) -> Iterator[Asked]:
    """Turns of eight sessions in any order; half of them begin with one of two system prompts.

    Sessions grow by question and answer, are edited in the middle, cut, repeated, and begun anew.
    """
    draw = random.Random(seed)
    systems = [[(content_id(str(seed), "system", number), 90)] for number in range(2)]
    sessions: list[Segments] = [[] for _ in range(8)]
    for number in range(requests):

        def fresh(kind: str, number: int = number) -> tuple[int, int]:
            length = draw.choice((1, 3, draw.randint(4, 20), draw.randint(16, 60)))
            return content_id(str(seed), kind, number), length

        which = draw.randrange(len(sessions))
        session = sessions[which]
        manner = draw.choices(("grow", "repeat", "edit", "cut", "new"), (12, 2, 2, 2, 1))[0]
        if manner == "new" or not session:
            session = [*(systems[which % 2] if which < 4 else []), fresh("opening")]
        elif manner == "edit":
            session[draw.randrange(len(session))] = fresh("edit")
        elif manner == "cut":
            session = session[: draw.randint(1, len(session))]
        if manner != "repeat":
            session = [*session, fresh("question")]
        answer = fresh("answer")
        yield Asked(list(session), [answer])
        sessions[which] = [*session, answer] if draw.random() < 0.8 else session
        if sum(length for _, length in sessions[which]) > 400:
            sessions[which] = []
