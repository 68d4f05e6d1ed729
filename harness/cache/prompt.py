"""Prompts for the cache models, made of the paths that a run records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from harness.cache.base import Item, Prompt
from harness.workload.content import digits

KEPT_SEGMENTS = 65_536
"""How many segments are kept in items: a session's history comes again with every turn."""

_WORD_IDS = 2**63
"""The id of word number 0. Content ids are int64, so no content has the id of a word."""


def items(path: Sequence[int], path_tokens: Sequence[int], lexicon_words: int | None) -> Prompt:
    """The prompt of one recorded request: its content ids, their lengths in tokens, and how many words spell an id.

    The text of a segment begins with the words that spell its content id (`harness.workload.content`), so the texts of
    two ids may share some first words by accident. Each of these words becomes an item of its own, one token long,
    under an id that means "this word"; the rest of the segment, if there is any, is one item under the content id. Two
    rests follow the same words only if their content ids are equal. So prompts share tokens as far as their items are
    equal, even if a short segment ends within the words of a longer one.

    The template's pieces, live answers and what an arrangement fault cut out of a text spell no id. Nothing in a path
    tells them apart, so they are split alike. That is exact wherever equal items are followed by equal items, and that
    is nearly everywhere: after the same messages stands the same piece of the template, and an answer is met again by
    itself. Where such a piece stands in one prompt and something else in the other, how many first words they have in
    common by chance is not known: mostly none, and the split may say one where there is none.

    `lexicon_words` None: ids never share, as in traces; each segment is one item.
    """
    segments = zip(path, path_tokens, strict=True)
    if lexicon_words is None:
        return [(identity, length) for identity, length in segments if length]
    return [item for identity, length in segments for item in _segment(identity, length, lexicon_words)]


def tokens(prompt: Prompt) -> int:
    """Its length in tokens."""
    return sum([length for _, length in prompt])


def common_tokens(a: Prompt, b: Prompt) -> int:
    """Length in tokens of the longest common prefix."""
    equal = equal_items(a, b)
    shared = tokens(a[:equal])
    for (id_a, tokens_a), (id_b, tokens_b) in zip(a[equal:], b[equal:], strict=False):
        if id_a != id_b:
            break
        shared += min(tokens_a, tokens_b)
        if tokens_a != tokens_b:
            break
    return shared


def equal_items(a: Prompt, b: Prompt) -> int:
    """How many of the first items are the same; whole pieces are compared at a time, as prompts are long."""
    start, size = 0, min(len(a), len(b))
    step = 16
    while start < size:
        end = min(start + step, size)
        if a[start:end] == b[start:end]:
            start, step = end, step * 2
        elif end - start == 1:
            break
        else:
            size, step = end, max(1, (end - start) // 2)
    return start


def beginning(prompt: Iterable[Item], count: int) -> list[Item]:
    """Its first `count` tokens, or all if it has no more."""
    kept = []
    for item in prompt:
        if count < item[1]:
            if count > 0:
                kept.append((item[0], count))
            break
        kept.append(item)
        count -= item[1]
    return kept


@lru_cache(maxsize=KEPT_SEGMENTS)
def _segment(identity: int, length: int, lexicon_words: int) -> tuple[Item, ...]:
    words = _words(lexicon_words)
    spelled = [words[digit] for digit in digits(identity, lexicon_words)[:length]]
    rest = length - len(spelled)
    return (*spelled, (identity, rest)) if rest else tuple(spelled)


@lru_cache
def _words(lexicon_words: int) -> tuple[Item, ...]:
    """The items of all words: one object each, so that equal prompts are compared fast."""
    return tuple((_WORD_IDS + number, 1) for number in range(lexicon_words))
