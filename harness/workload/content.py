"""Content ids, and the words that an id spells: text that is the same wherever its id is known."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256

CACHED_TEXTS = 256
"""How many word texts are kept: system prompts and the history of running sessions come again in every turn."""
LEAST_ID_WORDS = 8
"""Words that spell an id in a lexicon of 512 words, the most that one has; a smaller one takes more."""

_ID_VALUES = 2**64
_BLOCK = struct.Struct(">16H")


def content_id(seed: str, *parts: str | int) -> int:
    """The id (int64) of the content named by `parts` in a run of `seed`.

    It is the first 8 bytes of sha-256 over the JSON list [seed, *parts], read as a signed big-endian number.
    """
    named = json.dumps([seed, *parts], separators=(",", ":")).encode("ascii")
    return int.from_bytes(sha256(named).digest()[:8], "big", signed=True)


def live_answer_id(run_id: str, target_number: int, session: int, turn: int) -> int:
    """The id under which an engine's own answer stands in the prompts that send it back."""
    return content_id(run_id, target_number, "live", session, turn)


def id_words(lexicon_size: int) -> int:
    """How many words spell an id: the digits that an unsigned 64-bit number can have in base `lexicon_size`.

    16 for 16 words, 11 for 64, 8 for 512.
    """
    digits, values = 0, 1
    while values < _ID_VALUES:
        values *= lexicon_size
        digits += 1
    return digits


def common_words(id_a: int, id_b: int, lexicon_size: int) -> int:
    """The number of leading words that the texts of two different ids share by accident.

    Texts that are shorter share at most their length. Two equal ids give all their `id_words`.
    """
    same = 0
    for digit_a, digit_b in zip(digits(id_a, lexicon_size), digits(id_b, lexicon_size), strict=True):
        if digit_a != digit_b:
            break
        same += 1
    return same


@lru_cache(maxsize=CACHED_TEXTS)
def words_text(words: tuple[str, ...], identity: int, count: int) -> str:
    """`count` words, each after a space: first those that spell the id `identity`, then its stream."""
    return "".join([" " + words[number] for number in _word_numbers(identity, len(words), count)])


def stream_words(words: Sequence[str], identity: int, count: int) -> str:
    """`count` words of the stream of `identity`, each after a space, without the words that spell it."""
    return "".join([" " + words[number] for number in _stream(identity, len(words), count)])


def cut_text(words: tuple[str, ...], whole: str, start: int, count: int | None, changed: bool) -> str:
    """`count` words of the text `whole` after its first `start`; None: all that follows, be it words or not.

    `changed`: each word gives way to the next of `words`.
    """
    rest = whole.split(" ", start + 1)[-1]
    if count is None and not changed:
        return f" {rest}"
    kept = rest.split(" ", count or -1)[:count]
    if changed:
        kept = [words[(words.index(word) + 1) % len(words)] for word in kept]
    return "".join([f" {word}" for word in kept])


def _word_numbers(identity: int, lexicon_size: int, count: int) -> list[int]:
    spelled = digits(identity, lexicon_size)[:count]
    return [*spelled, *_stream(identity, lexicon_size, count - len(spelled))]


def digits(identity: int, lexicon_size: int) -> list[int]:
    """The unsigned id in base `lexicon_size`, least significant digit first, in `id_words` digits."""
    rest = identity % _ID_VALUES
    found = []
    for _ in range(id_words(lexicon_size)):
        rest, digit = divmod(rest, lexicon_size)
        found.append(digit)
    return found


def _stream(identity: int, lexicon_size: int, count: int) -> Iterator[int]:
    """`count` numbers below `lexicon_size`: sha-256 over (id, counter), 16 numbers of 16 bits from each."""
    key = struct.pack(">q", identity)
    for start in range(0, count, 16):
        numbers = _BLOCK.unpack(sha256(key + struct.pack(">Q", start // 16)).digest())
        for number in numbers[: count - start]:
            yield number % lexicon_size
