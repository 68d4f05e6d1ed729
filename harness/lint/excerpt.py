"""Both sides of a difference, cut out of their prompts."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from harness.lint.differing import Place
from harness.lint.segments import Segments

_BEFORE, _WINDOW, _AFTER = 32, 64, 24
_AGREED = 6
"""So many equal characters end a difference."""
_CONTEXTS = ((24, 24), (24, 0), (0, 24), (12, 0), (0, 12))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What stands before, what differs, what stands behind."""

    before: str
    differing: str
    after: str


def excerpts(earlier: Segments, later: Segments, at: Place) -> tuple[Excerpt, Excerpt]:
    """Of the first difference between two prompts."""
    one, other = (segments[at.segment].text if at.segment < len(segments) else "" for segments in (earlier, later))
    windows = one[at.at : at.at + _WINDOW], other[at.at : at.at + _WINDOW]
    blocks = SequenceMatcher(None, *windows, autojunk=False).get_matching_blocks()
    agreed = next((block for block in blocks if block.size >= _AGREED), None)
    ends = (agreed.a, agreed.b) if agreed else tuple(len(window) for window in windows)
    first, second = (
        Excerpt(text[max(0, at.at - _BEFORE) : at.at], window[:end], window[end : end + _AFTER])
        for text, window, end in zip((one, other), windows, ends, strict=True)
    )
    return first, second


def place_in(original: Segments, changed: Segments, at: Place) -> Place:
    """The place in the original prompt of a place in a changed one: by what stands around it."""
    if at.segment >= len(changed):
        return Place(len(original) - 1, len(original[-1].text))
    segment = changed[at.segment]
    number = next((number for number, one in enumerate(original) if one.path == segment.path), 0)
    text = original[number].text
    if text == segment.text:
        return Place(number, at.at)
    for before, after in _CONTEXTS:
        start = max(0, at.at - before)
        context = segment.text[start : at.at + after]
        found = text.find(context) if context else -1
        if found >= 0:
            return Place(number, found + at.at - start)
    return Place(number, min(at.at, len(text)))
