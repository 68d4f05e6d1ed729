"""White space that changes: the same words with other blanks and line ends between or behind them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from harness.lint.differing import Place, common_length
from harness.lint.json_text import Span, lexemes, span_at
from harness.lint.rule import Step
from harness.lint.segments import Segments, with_texts
from harness.lint.values import masked

_BLANKS = " \t\r\n\f\v"
_PIECE = re.compile(rf"([{_BLANKS}]*)([^{_BLANKS}]*)")
_STRUCTURE = re.compile(r"[-*+#>|]|\d+[.)]")
"""What a line begins with that must not be joined to the line before it."""
_FENCE = re.compile(r"```|~~~")
_PLAIN = re.compile(r"\w[\w.,!?:;%-]*")
"""A word as texts have it, with no sign of code or quotation."""
_WRAPPED_LENGTH = 40
"""A line that was wrapped, and does not end where it does for a reason of its own, has so many characters at least."""


class _Gap(NamedTuple):
    """White space between two words, in the later prompt."""

    old: str
    """As it is."""
    new: str
    """As it is in the earlier one."""
    word_before: str
    """Empty at the very beginning."""
    word: str
    """Empty at the very end."""
    prose_length: int
    """Of the line that the gap ends or goes on with; 0 if it begins like a list, a heading, a quotation or a table."""


_Choose = Callable[[_Gap], str]


def spacing_step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    """Words are the same where the prompts part, and the white space is not."""
    if at.segment >= min(len(earlier), len(later)):
        return None
    before, now = earlier[at.segment].text, later[at.segment].text
    if not {before[at.at : at.at + 1], now[at.at : at.at + 1]} & {"", *_BLANKS}:
        return None
    spaced = with_spacing_of(earlier, later)
    new = spaced[at.segment].text
    if new == now or (new != before and common_length(new, before) <= at.at):
        return None
    order = f"{later[at.segment].place} with the white space that it had before"
    return Step("whitespace-changed", earlier, spaced, None, order)


def with_spacing_of(earlier: Segments, later: Segments, only_harmless: bool = False) -> Segments:
    """`later` with the white space of `earlier`, as far as their words are the same from the first one on.

    A time or an id is as good as another. `only_harmless` changes nothing that might mean something: indentation and
    the ends of short lines stay, and so do lines that begin like a list, a heading, a quotation or a table.
    """
    texts = [segment.text for segment in later]
    for number, (before, now) in enumerate(zip(earlier, later, strict=False)):
        if before.role != now.role:
            break
        choose: _Choose = _always
        if only_harmless:
            choose = _at_line_ends if _FENCE.search(now.text) else _harmless
        texts[number], is_same = _respaced(before.text, now.text, choose)
        if not is_same:
            break
    return with_texts(later, texts)


def _harmless(gap: _Gap) -> str:
    """What is taken in a text: another wrapping, or other blanks behind a line or between plain words."""
    if not gap.word:
        return gap.new
    if _indent(gap) != _indent(gap._replace(old=gap.new)):
        return gap.old
    lines, new_lines = _lines(gap.old), _lines(gap.new)
    if not gap.word_before or lines == new_lines > 0:
        return gap.new
    if lines == new_lines:
        return gap.new if _PLAIN.fullmatch(gap.word_before) and _PLAIN.fullmatch(gap.word) else gap.old
    is_wrapping = max(lines, new_lines) == 1 and gap.prose_length >= _WRAPPED_LENGTH
    return gap.new if is_wrapping and not _STRUCTURE.match(gap.word) else gap.old


def _at_line_ends(gap: _Gap) -> str:
    """What is taken where there is code: what stands before the ends of the same number of lines."""
    if not gap.word:
        return gap.new
    is_same = _indent(gap) == _indent(gap._replace(old=gap.new)) and gap.old.count("\n") == gap.new.count("\n") > 0
    return gap.new if gap.word_before and is_same else gap.old


def _always(gap: _Gap) -> str:
    return gap.new


def _indent(gap: _Gap) -> str:
    """What stands before the first word of a line; empty between words of one line."""
    return gap.old.rpartition("\n")[2] if "\n" in gap.old or not gap.word_before else ""


def _lines(blanks: str) -> int:
    """Line ends; two or more are all one."""
    return min(2, blanks.count("\n"))


def _respaced(before: str, now: str, choose: _Choose) -> tuple[str, bool]:
    """`now` with the white space of `before` up to the first other word; and whether there is no such word."""
    if before == now:
        return now, True
    parts: list[str] = []
    at_before, at, word_before, length, is_prose = 0, 0, "", 0, True
    while at < len(now) or at_before < len(before):
        one, other = _PIECE.match(before, at_before), _PIECE.match(now, at)
        assert one is not None
        assert other is not None
        word, end_before, end = other[2], one.end(), other.end()
        if spans := _same_json(before, one.start(2), now, other.start(2)):
            (_, end_before), (_, end) = spans
            word = before[one.start(2) : end_before]
        elif one[2] != word and masked(one[2]) != masked(word):
            return "".join(parts) + now[at:], False
        if at and at_before and word and bool(one[1]) != bool(other[1]):  # blanks that part what was one word
            return "".join(parts) + now[at:], False
        gap = _Gap(other[1], one[1], word_before, word, length if is_prose else 0)
        blanks = choose(gap)
        parts += [blanks, word]
        if "\n" in other[1] or not word_before:
            length, is_prose = 0, _STRUCTURE.match(word) is None
        length += len(other[1]) + len(word)
        at_before, at, word_before = end_before, end, word
    return "".join(parts), True


def _same_json(before: str, at_before: int, now: str, at: int) -> tuple[Span, Span] | None:
    """The JSON values that begin at these places, if they differ at most in white space."""
    if before[at_before : at_before + 1] not in ("{", "[") or now[at : at + 1] not in ("{", "["):
        return None
    one, other = span_at(before, at_before), span_at(now, at)
    if one is None or other is None or one.start != at_before or other.start != at:
        return None
    if lexemes(before[one.start : one.end]) != lexemes(now[other.start : other.end]):
        return None
    return one, other
