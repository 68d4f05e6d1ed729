from __future__ import annotations

from harness.workload.words import CANDIDATES


def test_candidates_are_a_thousand_different_words_of_lower_case_ascii_letters() -> None:
    assert len(CANDIDATES) == len(set(CANDIDATES)) == 1024
    assert all(word.isascii() and word.isalpha() and word.islower() for word in CANDIDATES)
