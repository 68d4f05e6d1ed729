"""Stop words of mlx-lm's server: it looks for them among the tokens, and apart from that in the text.

An answer ends where its latest tokens are those that the stop word is by itself. Where a stop word only stands in the
text, inside another word for example, it is taken out, and the answer goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer with stop words looked for."""

    pieces: tuple[str, ...]
    """What is said at each token, the one that ends it included."""
    stopped: bool


def spoken(tokens: Iterable[tuple[int, str]], stops: Sequence[tuple[str, Sequence[int]]]) -> Spoken:
    """The answer of these tokens (id and text), up to the one that completes a stop word (text and ids).

    Text that may become a stop word is held back; at the last token it is said, unless a stop word ended the answer.
    """
    pieces: list[str] = []
    ids: list[int] = []
    filter_ = Filter([text for text, _ in stops])
    for token, text in tokens:
        ids.append(token)
        if any(ids[-len(stop) :] == list(stop) for _, stop in stops if stop):
            return Spoken((*pieces, ""), True)
        pieces.append(filter_.said(text))
    if pieces:
        pieces[-1] += filter_.held
    return Spoken(tuple(pieces), False)


class Filter:
    """Takes words out of a text that comes piece by piece."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word for word in words if word]
        self.held = ""
        """Text that is not said yet."""
        self._begun = ""
        """The end of it that is the beginning of a word."""

    def said(self, text: str) -> str:
        """What can be said now. Text is held back from where a word may begin until none may any more."""
        told = ""
        for letter in text:
            self.held += letter
            self._begun = self._longest_beginning(self._begun + letter)
            found = [word for word in self._words if self._begun.endswith(word)]
            if found:
                told += self.held[: len(self.held) - max(map(len, found))]
                self.held = self._begun = ""
            elif not self._begun:
                told += self.held
                self.held = ""
        return told

    def _longest_beginning(self, text: str) -> str:
        while text and not any(word.startswith(text) for word in self._words):
            text = text[1:]
        return text
