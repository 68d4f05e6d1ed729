"""Real text cut and padded to an exact number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.workload.content import content_id, id_words, stream_words, words_text
from harness.workload.corpus import SEPARATOR, Corpus

MOST_CUTS = 8
"""Cuts that are tried for one document."""


class Fit(NamedTuple):
    """A document is: the words of its id, `chars` characters of the corpus, `pad` words."""

    chars: int
    """0: the document is too short for real text, and is words only."""
    pad: int


class CannotFit(Exception):
    """Text of the corpus does not add up on this target; str() tells the numbers."""


def document_text(corpus: Corpus, words: tuple[str, ...], document: int, identity: int, tokens: int, fit: Fit) -> str:
    """The text of document number `document`, `tokens` long, under the content id `identity`."""
    if fit.chars == 0:
        return words_text(words, identity, tokens)
    spelled = words_text(words, identity, id_words(len(words)))
    return spelled + SEPARATOR + corpus.text(document, fit.chars) + stream_words(words, identity, fit.pad)


def fit_documents(
    corpus: Corpus, words: tuple[str, ...], lengths: Sequence[int], count: Callable[[str], int]
) -> tuple[Fit, ...]:
    """The fit of each document, given their lengths in tokens; at most 10 calls of `count` a document, mostly 3.

    `count` gives the tokens of a text that begins with a space, to the token. Raises CannotFit.
    """
    fitter = _Fitter(corpus, words, count)
    return tuple(fitter.fit(document, tokens) for document, tokens in enumerate(lengths))


class _Fitter:
    def __init__(self, corpus: Corpus, words: tuple[str, ...], count: Callable[[str], int]) -> None:
        self._corpus = corpus
        self._words = words
        self._count = count
        self._tokens_per_char = 0.3
        self._fits: dict[tuple[int, int], Fit] = {}

    def fit(self, document: int, tokens: int) -> Fit:
        """Texts come again once all of the corpus have had their turn, so their fits do too."""
        key = document % len(self._corpus.texts), tokens
        if key not in self._fits:
            self._fits[key] = self._verified(document, tokens, self._cut(document, tokens))
        return self._fits[key]

    def _cut(self, document: int, tokens: int) -> Fit:
        """The most text found that leaves no more than about one token in a hundred to be padded.

        Each guess follows the line between the longest text that fits and the shortest that does not.
        """
        room = tokens - id_words(len(self._words))
        slack = max(4, room // 100)
        low, high = (0, 0), None
        for _ in range(MOST_CUTS):
            rate = (high[1] - low[1]) / (high[0] - low[0]) if high else self._tokens_per_char
            guess = low[0] + int((room - low[1] - slack / 2) / rate)
            chars = self._corpus.cut(document, guess) if guess > 0 else 0
            if chars <= low[0] or (high and chars >= high[0]):
                break
            used = self._length(document, tokens, Fit(chars, 0)) - id_words(len(self._words))
            self._tokens_per_char = max(used, 1) / chars
            if used > room:
                high = (chars, used)
            elif room - used > slack:
                low = (chars, used)
            else:
                return Fit(chars, room - used)
        return Fit(low[0], room - low[1])

    def _verified(self, document: int, tokens: int, fit: Fit) -> Fit:
        """`fit`, corrected once if text and padding together count otherwise than apart."""
        for _ in range(2):
            counted = self._length(document, tokens, fit)
            if counted == tokens:
                return fit
            fit = Fit(fit.chars, max(0, fit.pad + tokens - counted))
        raise CannotFit(f"document {document} has {counted} tokens where {tokens} were wanted")

    def _length(self, document: int, tokens: int, fit: Fit) -> int:
        identity = content_id("fit", document)
        return self._count(document_text(self._corpus, self._words, document, identity, tokens, fit))
