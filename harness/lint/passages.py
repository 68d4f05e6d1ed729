"""Passages that come again in another order: put back into the order of before, new ones behind them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple

from harness.lint.differing import Place, first_difference
from harness.lint.rule import Step
from harness.lint.segments import Path, Segments, with_texts

LEAST_CHARACTERS = 20
"""What is shorter is no passage, and stays where it stands."""
_NAMES = r"(?:document|doc|passage|source|chunk|result|context|section|example|snippet|excerpt|item|reference)"
_NUMBERED = (
    rf"(?:\[\w{{1,3}}\]|\(\d+\)|\d+[.):]|#+\s|[-*\u2022]\s|<{_NAMES}\b[^>\n]*>|{_NAMES}\s*#?\s*\d+\b(?:\s*[:.)-])?)"
)
_LABEL = re.compile(rf"\s*(?:<[^>\n]*>\s*)*(?:{_NUMBERED}\s*)?(?:<[^>\n]*>\s*)*", re.IGNORECASE)
_TAIL = re.compile(r"(?:\s|</[^>\n]*>|^-{3,}$|^={3,}$)*\Z", re.MULTILINE)
_LABELLED = re.compile(rf"\s*(?:<[^>\n]*>\s*)*{_NUMBERED}", re.IGNORECASE)
_BORDERS = (
    re.compile(rf"\n(?=[ \t]*{_NUMBERED})", re.IGNORECASE),
    re.compile(rf"\n(?=[ \t]*{_NUMBERED})|\n[ \t]*\n", re.IGNORECASE),
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n"),
)
"""Ways to cut a text into passages; the one by which most becomes the same is the right one."""
_KEPT_TEXTS = 1024


class _Passage(NamedTuple):
    """Where the text of a passage stands, without its number or tag, which belong to the place."""

    segment: int
    start: int
    end: int


def passages_step(earlier: Segments, later: Segments, at: Place) -> Step | None:
    """Passages of the message in which the prompts part stand in another order."""
    if at.segment >= min(len(earlier), len(later)) or earlier[at.segment].role != later[at.segment].role:
        return None
    segment = later[at.segment]
    rest = sum(len(one.text) for one in later[at.segment :] if one.owner == segment.owner) - at.at
    if rest < 2 * LEAST_CHARACTERS:
        return None
    ordered = in_order_of(earlier, later, segment.owner)
    if ordered is None:
        return None
    order = f"the passages in {segment.place} in the order of before, new ones behind them"
    return Step("passages-reranked", earlier, ordered, segment.owner, order)


def in_order_of(earlier: Segments, later: Segments, owner: Path) -> Segments | None:
    """`later` with the passages of one message in the order of `earlier`; None if that makes nothing more the same."""
    best, most = None, first_difference(earlier, later)
    if most is None:
        return None
    for border, with_label in product(_BORDERS, (False, True)):
        ordered = _reordered(earlier, later, partial(_passages, owner=owner, border=border, with_label=with_label))
        if ordered is not None:
            reached = first_difference(earlier, ordered)
            if reached is None:
                return ordered
            if reached > most:
                best, most = ordered, reached
    return best


def is_labelled(text: str) -> bool:
    """Whether a text begins like a passage: with its number, or a tag."""
    return _LABELLED.match(text) is not None


def _reordered(earlier: Segments, later: Segments, cut: Callable[[Segments], list[_Passage]]) -> Segments | None:
    before, now = cut(earlier), cut(later)
    ranks = {name: rank for rank, name in enumerate(_numbered(_texts(earlier, before)))}
    texts = _texts(later, now)
    names = _numbered(texts)
    known = [place for place, name in enumerate(names) if name in ranks]
    right = sorted(known, key=lambda place: ranks[names[place]])
    wrong = [place for place, other in zip(known, right, strict=True) if place != other]
    if not wrong:
        return None
    region = range(wrong[0], wrong[-1] + 1)
    inside = [place for place in right if place in region]
    inside += [place for place in region if names[place] not in ranks]
    changed = {now[place]: texts[other] for place, other in zip(region, inside, strict=True)}
    return with_texts(later, [_with(later[number].text, number, changed) for number in range(len(later))])


def _with(text: str, segment: int, changed: dict[_Passage, str]) -> str:
    parts, at = [], 0
    for passage, new in changed.items():
        if passage.segment == segment:
            parts += [text[at : passage.start], new]
            at = passage.end
    return "".join([*parts, text[at:]])


def _passages(segments: Segments, owner: Path, border: re.Pattern[str], with_label: bool) -> list[_Passage]:
    """The passages of one message. Labels are part of them, or of the place where they stand."""
    return [
        _Passage(number, start, end)
        for number, segment in enumerate(segments)
        if segment.owner == owner
        for start, end in _cut(segment.text, border, with_label)
    ]


@lru_cache(_KEPT_TEXTS)
def _cut(text: str, border: re.Pattern[str], with_label: bool) -> Sequence[tuple[int, int]]:
    borders = list(border.finditer(text))
    found = []
    for start, end in zip(
        [0, *(gap.end() for gap in borders)], [*(gap.start() for gap in borders), len(text)], strict=True
    ):
        if end - start < LEAST_CHARACTERS:
            continue
        if not with_label:
            label, tail = _LABEL.match(text, start, end), _TAIL.search(text[start:end])
            start, end = label.end() if label else start, start + tail.start() if tail else end
        if end - start >= LEAST_CHARACTERS:
            found.append((start, end))
    return found


def _texts(segments: Segments, passages: Sequence[_Passage]) -> list[str]:
    return [segments[passage.segment].text[passage.start : passage.end] for passage in passages]


def _numbered(texts: Sequence[str]) -> list[tuple[str, int]]:
    """Each text, and how many equal ones came before it."""
    seen: Counter[str] = Counter()
    names = []
    for text in texts:
        names.append((text, seen[text]))
        seen[text] += 1
    return names
