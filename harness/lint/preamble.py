"""What belongs to a user or a question, and stands before a long text that is the same: moved behind that."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from harness.lint.differing import Place
from harness.lint.json_text import spans
from harness.lint.kinds import Kind
from harness.lint.passages import is_labelled
from harness.lint.rule import Step
from harness.lint.segments import TOOLS, Segments, with_texts, without_emptied

LEAST_CHARACTERS = 256
"""What all share must be so long to be worth standing first, and no shorter than what differs before it."""
LEAST_SHARE = 0.1
"""And have this share of the prompt's characters."""
_BORDER = re.compile(r"(?<=[.!?])\s+|[ \t\r]*\n\s*|(?<=[\u3002\uff01\uff1f])")
_SHORTENED = 60
_KEPT_TEXTS = 1024


class _Piece(NamedTuple):
    """A sentence or a line, or (with no text) the beginning of a segment."""

    segment: int
    role: str
    text: str

    @property
    def name(self) -> str:
        """By which it is compared: white space behind it is no matter of this rule."""
        return self.text.rstrip() if self.text else f"\0{self.role}"


class Corpus(NamedTuple):
    """A run of pieces that stands behind others that differ."""

    before: tuple[str, ...]
    """The pieces that all begin with."""
    pieces: tuple[str, ...]


def preamble_step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    """The prompts part in their opening, and a long run of lines or sentences of it comes again behind."""
    before, now = _opening(earlier), _opening(later)
    a, b = _names(before), _names(now)
    first = next((number for number, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), None)
    if first is None or _length(now[first:]) < LEAST_CHARACTERS:
        return None
    matcher = SequenceMatcher(None, a[first:], b[first:], autojunk=False)
    start, other_start, size = max(
        matcher.get_matching_blocks(), key=lambda block: _length(now[first + block.b :][: block.size])
    )
    run = now[first + other_start :][:size]
    differing = (before[first:][:start], now[first:][:other_start])
    whole = sum(len(segment.text) for segment in later)
    if _length(run) < max(LEAST_CHARACTERS, LEAST_SHARE * whole, *map(_length, differing)):
        return None
    if any(piece.role == TOOLS for pieces in differing for piece in pieces):
        return None  # where tools stand is the template's choice
    moved = next((piece.text for pieces in reversed(differing) for piece in pieces if piece.text.strip()), None)
    if moved is None:
        return None
    corpus = Corpus(tuple(b[:first]), tuple(b[first + other_start :][:size]))
    kind: Kind = "passages-reranked" if is_labelled(moved) else "preamble-first"
    text = " ".join("".join(piece.text for piece in run).split())
    order = f'"{_short(text)}" ({len(text):,} characters) first, then "{_short(" ".join(moved.split()))}"'
    return Step(kind, with_corpus_first(earlier, corpus), with_corpus_first(later, corpus), corpus, order)


def with_corpus_first(segments: Segments, corpus: Corpus) -> Segments:
    """What stands between the common beginning and the corpus, moved behind the corpus."""
    pieces = _opening(segments)
    names = _names(pieces)
    begin = len(corpus.before)
    start = _find(names, corpus.pieces, begin)
    if tuple(names[:begin]) != corpus.before or start is None or start == begin:
        return segments
    end = start + len(corpus.pieces)
    last = pieces[end - 1].segment
    moved = "".join(piece.text for piece in pieces[begin:start])
    texts = [segment.text for segment in segments]
    for number in range(pieces[-1].segment + 1):
        texts[number] = ""
    for piece in (*pieces[:begin], *pieces[start:end]):
        texts[piece.segment] += piece.text
    if moved and texts[last] and not texts[last][-1].isspace():
        texts[last] += "\n"
    texts[last] += moved
    if moved and end < len(pieces) and pieces[end].segment == last and not moved[-1].isspace():
        texts[last] += "\n"
    for piece in pieces[end:]:
        texts[piece.segment] += piece.text
    return without_emptied(segments, with_texts(segments, texts))


def _opening(segments: Segments) -> list[_Piece]:
    """The pieces before the first answer; tools are no part of it, as they stand where the template puts them."""
    pieces = []
    for number, segment in enumerate(segments):
        if segment.role == "assistant" or not (segment.is_content or segment.role == TOOLS):
            break
        pieces.append(_Piece(number, segment.role, ""))
        texts = (segment.text,) if segment.role == TOOLS else _split(segment.text)
        pieces += [_Piece(number, segment.role, text) for text in texts]
    return pieces


@lru_cache(_KEPT_TEXTS)
def _split(text: str) -> tuple[str, ...]:
    """Sentences and lines; what is JSON stays in one piece."""
    whole = spans(text)
    borders = [border.end() for border in _BORDER.finditer(text)]
    borders = [at for at in borders if not any(start < at < end for start, end in whole)]
    parts = (text[start:end] for start, end in pairwise([0, *borders, len(text)]))
    return tuple(part for part in parts if part)


def _names(pieces: Iterable[_Piece]) -> list[str]:
    return [piece.name for piece in pieces]


def _find(names: list[str], run: tuple[str, ...], begin: int) -> int | None:
    for start in range(begin, len(names) - len(run) + 1):
        if names[start] == run[0] and tuple(names[start : start + len(run)]) == run:
            return start
    return None


def _length(pieces: Iterable[_Piece]) -> int:
    return sum(len(piece.text) for piece in pieces)


def _short(text: str) -> str:
    return text if len(text) <= _SHORTENED else f"{text[: _SHORTENED - 3]}..."
