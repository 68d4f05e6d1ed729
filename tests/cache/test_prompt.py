from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.prompt import beginning, common_tokens, items, tokens
from harness.workload.content import id_words, words_text

IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 40))
"""Small ids spell many equal words: their high digits are all 0."""
PATHS = st.lists(st.tuples(IDS, st.integers(1, 40)), max_size=6)


def words_of(path: list[tuple[int, int]], lexicon_words: int) -> list[str]:
    names = tuple(str(number) for number in range(lexicon_words))
    return [word for identity, length in path for word in words_text(names, identity, length).split()]


def items_of(path: list[tuple[int, int]], lexicon_words: int | None) -> list[tuple[int, int]]:
    return list(items([identity for identity, _ in path], [length for _, length in path], lexicon_words))


def test_a_segment_is_the_words_that_spell_its_id_and_its_rest() -> None:
    prompt = items([0x21], [20], 16)  # 16 words spell an id: 1, 2, then fourteen times 0
    spelled, rest = prompt[:-1], prompt[-1]
    assert rest == (0x21, 4)
    assert [length for _, length in spelled] == [1] * 16
    zero = spelled[2]
    assert spelled[2:] == [zero] * 14
    assert len({spelled[0], spelled[1], zero}) == 3


def test_a_short_segment_has_no_rest() -> None:
    assert items([0x21], [16], 16) == items([0x21], [20], 16)[:16]
    assert items([0x21], [1], 16) == items([0x31, 5], [1, 0], 16)


def test_words_have_ids_that_no_content_has() -> None:
    assert all(not -(2**63) <= identity < 2**63 for identity, _ in items([2**63 - 1, -(2**63)], [8, 8], 512))


def test_without_a_lexicon_each_segment_is_one_item() -> None:
    assert items([7, -8, 9], [20, 0, 1], None) == [(7, 20), (9, 1)]


@given(
    first=PATHS,
    second=PATHS,
    shared=PATHS,
    lexicon_words=st.sampled_from((4, 16, 512)),
)
@settings(max_examples=300, deadline=None)
def test_prompts_share_as_many_tokens_as_their_texts_share_words(
    first: list[tuple[int, int]], second: list[tuple[int, int]], shared: list[tuple[int, int]], lexicon_words: int
) -> None:
    a, b = [*shared, *first], [*shared, *second]
    texts = words_of(a, lexicon_words), words_of(b, lexicon_words)
    same = next(
        (place for place, (one, other) in enumerate(zip(*texts, strict=False)) if one != other),
        min(len(text) for text in texts),
    )
    found = common_tokens(items_of(a, lexicon_words), items_of(b, lexicon_words))
    assert tokens(items_of(a, lexicon_words)) == len(texts[0])
    # Where a rest is followed by other items, the next words may be equal by chance; no id tells.
    assert found == same or (found < same and _ends_in_a_rest(a, found, lexicon_words))


def _ends_in_a_rest(path: list[tuple[int, int]], place: int, lexicon_words: int) -> bool:
    """Whether the words before `place` are beyond those that spell the id of their segment."""
    for _, length in path:
        if place <= length:
            return place >= id_words(lexicon_words)
        place -= length
    return False


@pytest.mark.parametrize(
    ("other", "common"),
    [
        ([(1, 5), (2, 5)], 10),
        ([(1, 5), (2, 3)], 8),
        ([(1, 5), (2, 3), (3, 2)], 8),
        ([(1, 5), (3, 5)], 5),
        ([(2, 5)], 0),
        ([], 0),
    ],
)
def test_the_shorter_of_two_equal_ids_is_a_prefix(other: list[tuple[int, int]], common: int) -> None:
    assert common_tokens([(1, 5), (2, 5)], other) == common
    assert common_tokens(other, [(1, 5), (2, 5)]) == common


@pytest.mark.parametrize(
    ("count", "kept"),
    [
        (-1, []),
        (0, []),
        (2, [(1, 2)]),
        (3, [(1, 3)]),
        (4, [(1, 3), (2, 1)]),
        (5, [(1, 3), (2, 2)]),
        (9, [(1, 3), (2, 2)]),
    ],
)
def test_the_beginning_of_a_prompt_ends_within_an_item(count: int, kept: list[tuple[int, int]]) -> None:
    assert beginning([(1, 3), (2, 2)], count) == kept
