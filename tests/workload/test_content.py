from __future__ import annotations

from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from harness.workload.content import common_words, content_id, id_words, stream_words, words_text
from harness.workload.words import CANDIDATES

IDS = st.integers(-(2**63), 2**63 - 1)
SIZES = st.integers(16, 512)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[int, int, int]:
    """A lexicon's size and two different ids that often agree in their first digits."""
    size = draw(SIZES)
    one = draw(st.integers(0, 2**64 - 1))
    step = size ** draw(st.integers(0, id_words(size) - 1))
    other = draw(st.one_of(st.just((one + step) % 2**64), st.integers(0, 2**64 - 1).filter(lambda n: n != one)))
    return size, one - 2**63, other - 2**63


def shared(text_a: str, text_b: str) -> int:
    """Leading words that two texts share, by comparing them."""
    pairs = zip(text_a.split(), text_b.split(), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def test_an_id_is_the_beginning_of_the_sha_256_of_the_json_list_of_its_names() -> None:
    # printf '["1/n","system",3]' | sha256sum
    assert content_id("1/n", "system", 3) == int.from_bytes(bytes.fromhex("4aecc1553a66db71"), "big", signed=True)


def test_names_that_look_alike_when_joined_are_different_ids() -> None:
    ids = [
        content_id("0/", *parts) for parts in [("a", "b"), ("ab",), ("a", 1), ("a", "1"), ('a","b',), ("a", "b", "")]
    ]
    assert len(set(ids)) == len(ids)


def test_ids_are_64_bit_signed_numbers_of_both_signs() -> None:
    ids = [content_id("0/", number) for number in range(50)]
    assert all(-(2**63) <= identity < 2**63 for identity in ids)
    assert min(ids) < 0 < max(ids)


def test_an_id_takes_as_many_words_as_64_bits_have_digits() -> None:
    assert [id_words(size) for size in (16, 64, 256, 512)] == [16, 11, 8, 8]


def test_the_first_words_of_a_text_are_the_digits_of_its_id_least_significant_first() -> None:
    words = CANDIDATES[:512]
    identity = 5 + 300 * 512 + 511 * 512**2
    text = words_text(words, identity, 8)
    assert text.split() == [words[digit] for digit in (5, 300, 511, 0, 0, 0, 0, 0)]


def test_a_text_has_one_space_before_each_word_and_nothing_else() -> None:
    text = words_text(CANDIDATES[:300], content_id("0/", "x"), 1000)
    assert text == "".join(f" {word}" for word in text.split())
    assert len(text.split()) == 1000


@given(IDS, st.integers(0, 60), st.integers(0, 60))
def test_a_longer_text_of_the_same_id_begins_with_the_shorter_one(identity: int, short: int, more: int) -> None:
    words = CANDIDATES[:100]
    assert words_text(words, identity, short + more).startswith(words_text(words, identity, short))


def test_the_words_after_the_id_are_spread_over_the_whole_lexicon() -> None:
    drawn = stream_words(CANDIDATES[:512], content_id("0/", "x"), 20_000).split()
    counts = [drawn.count(word) for word in CANDIDATES[:512]]
    assert min(counts) >= 10  # 39 are expected of each, with a standard deviation of 6
    assert max(counts) <= 75


@given(neighbours(), st.integers(1, 40), st.integers(1, 40))
def test_ids_alone_tell_how_many_leading_words_two_texts_share(
    case: tuple[int, int, int], tokens_a: int, tokens_b: int
) -> None:
    size, id_a, id_b = case
    words = CANDIDATES[:size]
    told = min(common_words(id_a, id_b, size), tokens_a, tokens_b)
    assert told == shared(words_text(words, id_a, tokens_a), words_text(words, id_b, tokens_b))


@given(neighbours())
def test_different_ids_differ_within_the_words_that_spell_them(case: tuple[int, int, int]) -> None:
    size, id_a, id_b = case
    assert common_words(id_a, id_b, size) < id_words(size)
    assert common_words(id_a, id_a, size) == id_words(size)
