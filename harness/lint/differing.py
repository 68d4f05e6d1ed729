"""Where two texts or two prompts part."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from harness.lint.segments import Segments

T = TypeVar("T", str, bytes)


class Place(NamedTuple):
    """A character of a prompt."""

    segment: int
    at: int


def common_length(a: T, b: T) -> int:
    """Characters, or bytes, that both begin with."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def first_difference(a: Segments, b: Segments) -> Place | None:
    """The first character that is not the same in both; None if one of them is the other's beginning.

    A message that goes on in one of them, and has ended in the other, differs behind its end.
    """
    for number, (one, other) in enumerate(zip(a, b, strict=False)):
        if one.role != other.role or _begins_message(a, number) != _begins_message(b, number):
            return Place(number, 0)
        if one.text != other.text:
            return Place(number, common_length(one.text, other.text))
    return None


def _begins_message(segments: Segments, number: int) -> bool:
    return number == 0 or segments[number].owner != segments[number - 1].owner
