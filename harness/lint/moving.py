"""Times and ids that stand before text that is the same: moved to the end of the last message."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from harness.lint.differing import Place
from harness.lint.json_text import Span, span_at, string_at
from harness.lint.kinds import Kind
from harness.lint.rule import Step
from harness.lint.segments import PROMPT, TOOLS, Path, Segment, Segments, with_texts, without_emptied
from harness.lint.values import Value, is_masked_whole, masked, value_at, values

MOST_CHARACTERS = 120
"""What is moved with a time or an id: its sentence or line, if that is no longer than this; else only itself."""
_BRACKETS_CHARACTERS = 80
"""Or what stands with it in brackets, up to this."""
_CONTEXT_CHARACTERS = 16
_BRACKETS = re.compile(r"\([^()\n]*\)\s?|\[[^\[\]\n]*\]\s?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[\u3002\uff01\uff1f])")
_END_IN_JSON = re.compile(rf"{_SENTENCE_END.pattern}|(?<!\\)\\n")
_SHORTENED = 80


class Mark(NamedTuple):
    """By which a piece is known in other prompts, whatever its times and ids are there."""

    path: Path
    mask: str
    before: str
    """What stands before it, masked; empty if the piece has words of its own."""


def value_step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    """The prompts part in a time or an id, and the sentence or line around it is the same but for such."""
    if at.segment >= min(len(earlier), len(later)):
        return None
    one, other = earlier[at.segment], later[at.segment]
    before, now = _value(one, at.at), _value(other, at.at)
    if before is None or now is None:
        return None
    mark = _mark(other, _piece(other, now))
    if _mark(one, _piece(one, before)) != mark:
        return None
    kind: Kind = "timestamp-first" if "time" in (before.category, now.category) else "request-id-first"
    moved = " ".join(other.text[slice(*_piece(other, now))].split())
    shown = moved if len(moved) <= _SHORTENED else f"{moved[: _SHORTENED - 3]}..."
    end = "it" if other.role == PROMPT else "the last message"
    order = f'"{shown}" out of {other.place}, to the end of {end}'
    return Step(kind, with_moved(earlier, {mark}), with_moved(later, {mark}), mark, order)


def with_moved(segments: Segments, marks: Collection[Mark]) -> Segments:
    """Every piece that one of `marks` tells, cut out of where it stands and put at the end of the last segment."""
    paths = {mark.path for mark in marks}
    texts, moved = [], []
    for segment in segments:
        text = segment.text
        if _path(segment) in paths:
            text, cut = _without(segment, marks)
            moved += cut
        texts.append(text)
    last = next((number for number in reversed(range(len(texts))) if segments[number].is_content), None)
    if not moved or last is None:
        return segments
    texts[last] = "\n".join([texts[last], *moved])
    return without_emptied(segments, with_texts(segments, texts))


def _without(segment: Segment, marks: Collection[Mark]) -> tuple[str, list[str]]:
    parts, moved, at = [], [], 0
    for value in values(segment.text):
        if value.start < at:
            continue
        piece = _piece(segment, value)
        if piece.start >= at and _mark(segment, piece) in marks:
            parts.append(segment.text[at : piece.start])
            if _is_number_in_json(segment, piece):
                parts.append("0")
            moved.append(segment.text[piece.start : piece.end].strip())
            at = piece.end
    return "".join([*parts, segment.text[at:]]), moved


def _value(segment: Segment, at: int) -> Value | None:
    """The value at a place; searched in its line, as texts are long."""
    start, end = _line(segment.text, at)
    found = value_at(segment.text[start:end], at - start)
    return found and Value(found.start + start, found.end + start, found.category)


def _piece(segment: Segment, value: Value) -> Span:
    """What is to be moved with a value: in JSON within its string, elsewhere with the end of its line."""
    text = segment.text
    json = _json_at(segment, value.start)
    if json is not None:
        inside = string_at(text, json, value.start)
        if inside is None:
            return Span(value.start, value.end)
        start, end = inside
    else:
        start, end = _line(text, value.start)
    for brackets in _BRACKETS.finditer(text, start, end):
        if brackets.start() < value.start and value.end <= brackets.end():
            if brackets.end() - brackets.start() <= _BRACKETS_CHARACTERS:
                return Span(brackets.start(), brackets.end())
            break
    for gap in (_SENTENCE_END if json is None else _END_IN_JSON).finditer(text, start, end):
        if gap.end() <= value.start:
            start = gap.end()
        elif gap.start() >= value.end:
            end = gap.end()
            break
    return Span(start, end) if end - start <= MOST_CHARACTERS else Span(value.start, value.end)


def _mark(segment: Segment, piece: Span) -> Mark:
    text = segment.text
    mask = masked(text[piece.start : piece.end])
    before = ""
    if is_masked_whole(mask):
        before = masked(text[max(0, piece.start - _CONTEXT_CHARACTERS) : piece.start])
    return Mark(_path(segment), mask, before)


def _path(segment: Segment) -> Path:
    return segment.path[:1] if segment.role == TOOLS else segment.path


def _line(text: str, at: int) -> Span:
    """The line that a character is in, its end included."""
    end = text.find("\n", at)
    return Span(text.rfind("\n", 0, at) + 1, len(text) if end < 0 else end + 1)


def _json_at(segment: Segment, at: int) -> Span | None:
    return Span(0, len(segment.text)) if segment.form == "json" else span_at(segment.text, at)


def _is_number_in_json(segment: Segment, piece: Span) -> bool:
    json = _json_at(segment, piece.start)
    return json is not None and string_at(segment.text, json, piece.start) is None
