from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from harness.errors import InputError
from harness.sim.answers import Answers

WORDS = range(500, 600)


def said(seed: int, prompt: list[int], count: int = 100) -> list[int]:
    return list(islice(Answers(seed, WORDS).to(prompt), count))


def test_the_same_prompt_gets_the_same_answer() -> None:
    assert said(0, [1, 2, 3]) == said(0, [1, 2, 3])
    assert said(0, [1, 2, 3], 10) == said(0, [1, 2, 3], 1000)[:10]


def test_another_seed_or_prompt_gets_another() -> None:
    answers = [said(0, [1, 2, 3]), said(1, [1, 2, 3]), said(0, [1, 2, 4]), said(0, [1, 2]), said(0, [1, 2, 3, 0])]
    assert len(set(map(tuple, answers))) == len(answers)


def test_answers_are_what_they_were_in_the_version_before() -> None:
    # By hand: BLAKE2b of the prompt's ids (32 bits each, low byte first) under the key BLAKE2b("7"), 32 bytes long;
    # with that as a key, BLAKE2b of the counter 0 in 64 bits; its first four numbers of 16 bits, modulo 100.
    assert said(7, [1, 258], 4) == [560, 533, 546, 563]


def test_all_words_come_equally_often() -> None:
    counts = Counter(said(0, [1], 20_000))
    assert set(counts) == set(WORDS)
    assert max(abs(count - 200) for count in counts.values()) < 5 * 200**0.5


@pytest.mark.parametrize("words", [range(0), range(65_537)])
def test_answers_need_words_and_not_too_many(words: range) -> None:
    with pytest.raises(InputError, match=f"cannot be made of {len(words)} words: give 1 to 65536"):
        Answers(0, words)
