"""Times and ids in a text: what changes from request to request and says little."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

Category = Literal["time", "id"]
_KEPT_TEXTS = 2048
_MASK = "\x00"
"""Stands for a time or an id where texts are compared but for these."""

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"\b(?:Mon|Tue(?:s)?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b\.?"
_ZONE = r"(?:\s?(?:Z\b|UTC\b|GMT\b|[A-Z]{2,4}T\b)?(?:\s?[+-]\d{2}:?\d{2}\b)?)"
_CLOCK = rf"\d{{1,2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d+)?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?{_ZONE}"
_DAY = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}"
    r"|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    rf"|\d{{1,2}}(?:st|nd|rd|th|\.)?\s(?:of\s)?{_MONTH},?(?:\s\d{{4}})?"
    rf"|{_MONTH}\s{{1,2}}\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\s\d{{4}}\b)?"
    rf"|{_MONTH}\s\d{{4}})"
)
_COMPACT = r"\d{8}(?:T\d{4}(?:\d{2})?Z?|[-_]\d{6})"
_EPOCH = r"1\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?"
_UNIT = r"(?:ms|milliseconds?|s|secs?|seconds?|min|mins|minutes?|h|hours?|days?|weeks?|months?|years?)"
_TIME = re.compile(
    rf"(?<![\w.])(?:{_COMPACT}|{_EPOCH}"
    rf"|(?:{_WEEKDAY},?\s)?{_DAY}(?:(?:T|,?\s(?:at\s)?){_CLOCK})?(?:\s\d{{4}}\b)?"
    rf"|(?:{_WEEKDAY},?\s)?{_CLOCK}|\d+(?:\.\d+)?\s?{_UNIT}\sago)(?!\w)"
    r"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
)
_WORD = re.compile(r"(?:(?<![\w-])-)?[A-Za-z0-9_]+(?:[-.:/+=]+[A-Za-z0-9_]+)*(?:[+/]*={1,2}|-(?![\w-]))?")
"""Of any alphabet that ids are written in: base64 and its like, too."""
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_DIGIT = re.compile(r"\d")
_RISE = re.compile(r"[a-z][A-Z]")
_VOWEL = re.compile(r"[aeiouyAEIOUY]")
_LEAST_LETTERS, _LEAST_RISES = 8, 2
"""An id without a digit is so long, and has so many capitals behind small letters, ..."""


class Value(NamedTuple):
    start: int
    end: int
    category: Category


@lru_cache(_KEPT_TEXTS)
def values(text: str) -> tuple[Value, ...]:
    """The times in a text, and between them every word with a digit or of drawn letters, from left to right.

    An escape of JSON, such as \\n, is no part of a word.
    """
    text = _ESCAPE.sub(lambda escape: " " * len(escape[0]), text)
    found: list[Value] = []
    at = 0
    for time in _TIME.finditer(text):
        found += _ids(text, at, time.start())
        found.append(Value(time.start(), time.end(), "time"))
        at = time.end()
    return (*found, *_ids(text, at, len(text)))


def value_at(text: str, at: int) -> Value | None:
    """The time or id that the character is a part of, or that ends before it."""
    return next((value for value in values(text) if value.start <= at <= value.end), None)


def masked(text: str) -> str:
    """The text with one and the same mark for every time and id."""
    parts, at = [], 0
    for value in values(text):
        parts += [text[at : value.start], _MASK]
        at = value.end
    return "".join([*parts, text[at:]])


def is_masked_whole(mask: str) -> bool:
    """Whether a masked text holds nothing but marks and what is not a word."""
    return _WORD.search(mask) is None


def _ids(text: str, start: int, end: int) -> list[Value]:
    return [Value(word.start(), word.end(), "id") for word in _WORD.finditer(text, start, end) if _is_id(word[0])]


def _is_id(word: str) -> bool:
    if _DIGIT.search(word):
        return True
    letters, rises = len(word), len(_RISE.findall(word))
    if letters < _LEAST_LETTERS or rises < _LEAST_RISES:
        return False
    # ... more of them than a name made of words has, or fewer vowels than words have.
    return 4 * rises >= letters or 4 * len(_VOWEL.findall(word)) <= letters
