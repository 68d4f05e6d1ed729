from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from harness.workload.vocabulary import WordSearch
from harness.workload.words import CANDIDATES


class Counter:
    """Counts a token for each good word and `bad_tokens` for each other, and some that are always there."""

    def __init__(self, good: set[str], bad_tokens: int = 2) -> None:
        self.good = good
        self.bad_tokens = bad_tokens
        self.calls = 0

    def __call__(self, text: str) -> int:
        self.calls += 1
        return 11 + sum(1 if word in self.good else self.bad_tokens for word in text.split())


def test_where_all_words_are_one_token_few_questions_find_512() -> None:
    counter = Counter(set(CANDIDATES))
    assert WordSearch(counter, most_calls=90).run(CANDIDATES, 512) == CANDIDATES[:512]
    assert counter.calls <= 10


@given(st.sets(st.sampled_from(CANDIDATES[:100])), st.integers(2, 5))
def test_exactly_the_one_token_words_are_found_in_their_order(good: set[str], bad_tokens: int) -> None:
    found = WordSearch(Counter(good, bad_tokens), most_calls=1000).run(CANDIDATES[:100], 100)
    assert found == tuple(word for word in CANDIDATES[:100] if word in good)


@given(st.integers(0, 1_000_000), st.floats(0, 1), st.integers(2, 90))
def test_questions_never_exceed_their_bound_and_what_is_found_is_right(
    seed: int, share: float, most_calls: int
) -> None:
    chance = random.Random(seed)
    good = {word for word in CANDIDATES if chance.random() < share}
    counter = Counter(good)
    found = WordSearch(counter, most_calls).run(CANDIDATES, 512)
    assert counter.calls <= most_calls
    assert set(found) <= good


def test_a_tenth_of_bad_words_leaves_plenty_in_ninety_questions() -> None:
    good = set(CANDIDATES) - set(CANDIDATES[::10])
    assert len(WordSearch(Counter(good), most_calls=90).run(CANDIDATES, 512)) >= 128


def test_no_more_words_than_wanted_are_found() -> None:
    assert len(WordSearch(Counter(set(CANDIDATES)), most_calls=90).run(CANDIDATES, 70)) == 70
