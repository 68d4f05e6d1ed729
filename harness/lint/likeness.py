"""Which earlier request each request is like, whatever stands where in it and whatever its numbers are."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from zlib import crc32

from harness.lint.segments import ChatPrompt

WORDS = 4
"""Words in a row that count as one thing in common."""
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_FIRST = 256
"""So many of a text's runs of words are all kept; of the others, those whose hash is a multiple of `_KEPT`."""
_KEPT = 8
_LATEST = 16
"""Requests that are remembered for each run of words."""
_KEPT_TEXTS = 4096


def likenesses(prompts: Sequence[ChatPrompt]) -> list[int | None]:
    """For each prompt the number of the earlier one that shares most runs of `WORDS` words with it.

    Of several the latest; None if none shares any. A word with a digit counts as any other such word.
    """
    having: defaultdict[int, deque[int]] = defaultdict(lambda: deque(maxlen=_LATEST))
    found: list[int | None] = []
    for number, prompt in enumerate(prompts):
        runs = {run for segment in prompt.segments for run in _runs(segment.text)}
        votes = Counter(chain.from_iterable(having[run] for run in runs if run in having))
        found.append(max(votes, key=lambda earlier: (votes[earlier], earlier)) if votes else None)
        for run in runs:
            having[run].append(number)
    return found


@lru_cache(_KEPT_TEXTS)
def _runs(text: str) -> frozenset[int]:
    words = ["0" if _DIGIT.search(word) else word for word in _WORD.findall(text)]
    starts = range(max(1, len(words) - WORDS + 1))
    hashes = [crc32(" ".join(words[start : start + WORDS]).encode()) for start in starts]
    return frozenset([*hashes[:_FIRST], *(value for value in hashes[_FIRST:] if value % _KEPT == 0)])
