"""Seeded sessions to send to a real server: they grow, are edited, cut, repeated and begun anew, in random order."""

from __future__ import annotations

import random
from collections.abc import Sequence

Tokens = tuple[int, ...]


class Dialogues:
    """A few sessions, half of which begin with one shared system prompt.

    `next_prompt` says what to send, `heard` what came back, which then is part of the session.
    """

    def __init__(self, seed: int, vocabulary: Sequence[int], sessions: int = 8, longest: int = 150) -> None:
        self.random = random.Random(seed)
        self.vocabulary = vocabulary
        self.longest = longest
        self.system = self.fresh(25)
        self.prompts: list[Tokens] = [() for _ in range(sessions)]
        self.answers: list[Tokens] = [() for _ in range(sessions)]
        self.current = 0

    def fresh(self, longest: int) -> Tokens:
        return tuple(self.random.choices(self.vocabulary, k=self.random.randint(3, longest)))

    def next_prompt(self) -> Tokens:
        self.current = session = self.random.randrange(len(self.prompts))
        sent, whole = self.prompts[session], self.prompts[session] + self.answers[session]
        manner = self.random.choices(("grow", "edit", "cut", "repeat", "new"), weights=(60, 12, 8, 10, 10))[0]
        if not sent or manner == "new" or (manner == "grow" and len(whole) > self.longest - 30):
            prompt = (self.system if session % 2 else ()) + self.fresh(40)
        elif manner == "grow":
            prompt = whole + self.fresh(30)
        elif manner == "edit":
            place = self.random.randrange(len(whole))
            prompt = whole[:place] + self.fresh(4) + whole[place + 2 :]
        elif manner == "cut":
            prompt = whole[: self.random.randrange(1, len(whole))] + self.fresh(3)
        else:
            prompt = sent
        self.prompts[session] = prompt[: self.longest]
        self.answers[session] = ()
        return self.prompts[session]

    def heard(self, answer: Sequence[int]) -> None:
        self.answers[self.current] = tuple(answer)
