from __future__ import annotations

import string

from harness.embedded.tiny_tokenizer import byte_symbols, merged, train
from harness.workload.words import CANDIDATES


def test_every_word_with_its_leading_space_is_one_token() -> None:
    vocabulary = train(CANDIDATES)
    assert {vocabulary.tokens[token] for token in vocabulary.whole_words} == {f"Ġ{word}" for word in CANDIDATES}
    assert len(set(vocabulary.tokens)) == len(vocabulary.tokens) < 3000


def test_merges_by_hand() -> None:
    # a+b stands in both words. Then every pair stands in one, and the greatest goes first: "Ġ", the space, is above
    # every letter, "Ġ" + "c" above "Ġ" + "ab", and "Ġc" above "Ġ".
    vocabulary = train(["ab", "cab", "ab"])
    assert vocabulary.merges == (("a", "b"), ("Ġ", "c"), ("Ġc", "ab"), ("Ġ", "ab"))
    assert vocabulary.tokens[256:] == ("ab", "Ġc", "Ġcab", "Ġab", "<|endoftext|>", "<|im_start|>", "<|im_end|>")
    assert vocabulary.whole_words == {258, 259}


def test_repeated_symbols_merge_from_the_left() -> None:
    assert merged(list("aaaba"), ("a", "a")) == ["aa", "a", "b", "a"]


def test_byte_symbols_are_those_of_gpt2() -> None:
    symbols = byte_symbols()
    assert len(set(symbols)) == 256
    assert all(symbols[ord(letter)] == letter for letter in string.ascii_letters + string.digits + string.punctuation)
    # as in GPT-2's published vocab.json: space, newline, tab, soft hyphen, and the last two bytes
    assert [symbols[byte] for byte in (0x20, 0x0A, 0x09, 0xAD, 0xFE, 0xFF)] == ["Ġ", "Ċ", "ĉ", "Ń", "þ", "ÿ"]
