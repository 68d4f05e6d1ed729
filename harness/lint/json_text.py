"""JSON as it is written: its keys put in order without touching a character of what they hold."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_OPENING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder()
_KEPT_TEXTS = 1024


class Span(NamedTuple):
    """From the first character to the one behind the last."""

    start: int
    end: int


@lru_cache(_KEPT_TEXTS)
def spans(text: str) -> tuple[Span, ...]:
    """The JSON values in a text that are an object or hold one, and that lie within no other."""
    found = []
    at = 0
    while opening := _OPENING.search(text, at):
        start = opening.start()
        try:
            _, at = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        if "{" in text[start:at]:
            found.append(Span(start, at))
    return tuple(found)


def span_at(text: str, at: int) -> Span | None:
    """The value that the character is a part of; None if it is of none."""
    return next((span for span in spans(text) if span.start <= at < span.end), None)


def string_at(text: str, span: Span, at: int) -> Span | None:
    """The inside of the string, within the value at `span`, that the character is a part of or stands behind."""
    for lexeme in _LEXEME.finditer(text, span.start, span.end):
        if lexeme.start() > at:
            break
        if lexeme[0][0] == '"' and lexeme.start() < at < lexeme.end():
            return Span(lexeme.start() + 1, lexeme.end() - 1)
    return None


@lru_cache(_KEPT_TEXTS)
def lexemes(text: str) -> tuple[str, ...]:
    """A JSON text without the white space between its parts."""
    return tuple(_LEXEME.findall(text))


def keys_of(text: str) -> list[str]:
    """Every key of a JSON text, in the order in which they stand."""
    found = lexemes(text)
    return [one for one, following in pairwise(found) if following == ":"]


@lru_cache(_KEPT_TEXTS)
def with_sorted_keys(text: str) -> str:
    """A JSON text with the members of every object sorted by key; the white space stays where it is.

    The text itself if a key occurs twice in an object, as their order tells which of the two counts.
    """
    reader = _Reader(text)
    try:
        return text[: reader.next_start] + reader.value() + text[reader.end :]
    except (_RepeatedKey, RecursionError):
        return text


class _RepeatedKey(Exception):
    pass


class _Reader:
    """Goes through a valid JSON text, one value after the other."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lexemes = list(_LEXEME.finditer(text))
        self._number = 0
        self.end = 0
        """Of the last lexeme that was taken."""

    @property
    def next_start(self) -> int:
        return self._lexemes[self._number].start()

    def value(self) -> str:
        """The next value, with sorted keys. Raises _RepeatedKey."""
        opening = self._take()
        if opening not in ("{", "["):
            return opening
        gap_start = self.end - 1
        gaps: list[str] = []
        members: list[tuple[str, str]] = []
        while self._lexemes[self._number][0] not in ("}", "]"):
            if self._lexemes[self._number][0] == ",":
                self._take()
            gaps.append(self._text[gap_start : self.next_start])
            members.append(self._member() if opening == "{" else ("", self.value()))
            gap_start = self.end
        self._take()
        gaps.append(self._text[gap_start : self.end])
        if opening == "{":
            if len({key for key, _ in members}) < len(members):
                raise _RepeatedKey
            members.sort()
        return gaps[0] + "".join(text + gap for (_, text), gap in zip(members, gaps[1:], strict=True))

    def _member(self) -> tuple[str, str]:
        """Key, and the text of key and value."""
        key = self._take()
        start = self.end
        self._take()
        between = self._text[start : self.next_start]
        return key, key + between + self.value()

    def _take(self) -> str:
        lexeme = self._lexemes[self._number]
        self._number += 1
        self.end = lexeme.end()
        return lexeme[0]
