"""What `prove` sends for each prefix, and how much of it was sent before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from harness.checks.prompts import CHANCE_WORDS
from harness.workload.content import common_words, id_words, words_text
from harness.workload.lexicon import Lexicon
from harness.workload.session import Message, Segment
from harness.workload.template import OPENER

Name = Literal["cold", "warm", "repeat", "tail", "middle", "first"]
NAMES: tuple[Name, ...] = ("cold", "warm", "repeat", "tail", "middle", "first")
"""In the order in which they are sent: what changes most comes last, as a server with one slot keeps one prompt."""
COLD: tuple[Name, ...] = ("cold", "first")
"""Nothing of these was sent before: they must look cold."""
AGAIN: tuple[Name, ...] = ("warm", "repeat")
"""All of their prefix was sent before."""

PREFIX_TOKENS = 2000
LEAST_PREFIX_TOKENS = 64
QUESTION_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Probe:
    """One prompt."""

    name: Name
    messages: tuple[Message, ...]
    least_shared: int
    """Tokens from the first on that were surely sent before under this prefix, or by any chat."""
    most_shared: int
    """Tokens that may have been: chance words, and what of the template cannot be placed, come on top."""


@dataclass(frozen=True, slots=True)
class Body:
    """What follows a prefix's mark, in three pieces: to the middle, to nine tenths, to the end."""

    pieces: tuple[Segment, Segment, Segment]

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)


class Plan:
    """Makes prefixes that differ from their first word on."""

    def __init__(
        self, lexicon: Lexicon, content_id: Callable[[str], int], questions: int, text: Sequence[tuple[str, int]] = ()
    ) -> None:
        """`content_id`: that of a name nobody used before; `text`: the three pieces of a file, each with its tokens;
        without, prefixes are made of words."""
        self._lexicon = lexicon
        self._id = content_id
        self._questions = questions
        self._text = text
        self._id_words = id_words(len(lexicon.words))
        template = lexicon.template
        self._head = template.head["user"] + template.opener_tokens
        self._unplaced = 0 if template.head_known else template.tail["user"]

    @property
    def question_tokens(self) -> int:
        return max(QUESTION_TOKENS, self._id_words)

    @property
    def least_tokens(self) -> int:
        """Of a prefix: its mark, and as much again in each half."""
        return max(LEAST_PREFIX_TOKENS, 4 * self._id_words)

    @property
    def around_tokens(self) -> int:
        """Of a prompt and its answer beside the prefix, at most: template, what is put in, question, one token."""
        return self._lexicon.template.tokens([Message("user", ())]) + 2 * self.question_tokens + 1

    def unrelated(self, name: str, tokens: int) -> tuple[Message, ...]:
        """A prompt of which nothing was sent before: so many tokens, and the template's."""
        return (Message("user", (Segment("user", self._id(name), tokens),)),)

    def probes(self, number: int, prefix_tokens: int) -> list[Probe]:
        """The prompts of prefix `number`, of so many tokens (with a file: of as many as that has, and its mark)."""
        mark, body = f"{number}/mark", self._body(number, prefix_tokens)
        to_middle, to_nine_tenths, to_end = body.pieces
        start, questions = self._mark(mark), [self._words(f"{number}/question {i}") for i in range(self._questions)]
        other, fresh = self._mark(self._parting(number, mark)), self._words(f"{number}/other")
        prefix, first = (start, *body.pieces), questions[0]
        mark_words = self._id_words
        whole = mark_words + body.tokens
        middle, nine_tenths = mark_words + to_middle.tokens, whole - to_end.tokens
        again = [self._probe("warm", (*prefix, question), whole) for question in questions[1:]]
        return [
            self._probe("cold", (*prefix, first), 0),
            *again,
            self._probe("repeat", (*prefix, questions[-1]), whole + self.question_tokens, is_whole=True),
            self._probe("tail", (start, to_middle, to_nine_tenths, fresh, to_end, first), nine_tenths),
            self._probe("middle", (start, to_middle, fresh, to_nine_tenths, to_end, first), middle),
            self._probe("first", (other, *body.pieces, first), 0),
        ]

    def _probe(self, name: Name, segments: Sequence[Segment], shared: int, is_whole: bool = False) -> Probe:
        messages = (Message("user", tuple(segments)),)
        if is_whole:
            tokens = self._lexicon.template.tokens(messages)
            return Probe(name, messages, tokens, tokens)
        # Of a fresh text the template's head may be there from any chat before, or may not.
        least = self._head + shared if shared else 0
        return Probe(name, messages, least, self._head + self._unplaced + shared + CHANCE_WORDS)

    def _body(self, number: int, prefix_tokens: int) -> Body:
        if self._text:
            pieces = [
                Segment("document", self._id(f"text {place}"), tokens, text=text)
                for place, (text, tokens) in enumerate(self._text)
            ]
        else:
            middle, nine_tenths = prefix_tokens // 2, prefix_tokens * 9 // 10
            lengths = (middle - self._id_words, nine_tenths - middle, prefix_tokens - nine_tenths)
            pieces = [
                Segment("document", self._id(f"{number}/piece {place}"), tokens) for place, tokens in enumerate(lengths)
            ]
        return Body((pieces[0], pieces[1], pieces[2]))

    def _mark(self, name: str) -> Segment:
        identity = self._id(name)
        if not self._text:
            return Segment("user", identity, self._id_words)
        # A message with a given text is sent without the opener, which then has to be part of it.
        text = OPENER + words_text(self._lexicon.words, identity, self._id_words)
        return Segment("user", identity, self._lexicon.template.opener_tokens + self._id_words, text=text)

    def _words(self, name: str) -> Segment:
        return Segment("user", self._id(name), self.question_tokens)

    def _parting(self, number: int, mark: str) -> str:
        """A name whose text differs from the mark's in its first word."""
        names = (f"{number}/other mark {i}" for i in count())
        size = len(self._lexicon.words)
        return next(name for name in names if common_words(self._id(name), self._id(mark), size) == 0)
