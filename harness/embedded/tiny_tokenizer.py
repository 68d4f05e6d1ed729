"""Byte-level BPE, learnt from a word list until every word of it, with the space before it, is one token."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

END_OF_TEXT, TURN_START, TURN_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
SPECIAL_TOKENS = (END_OF_TEXT, TURN_START, TURN_END)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
"""ChatML: the layout that Qwen, SmolLM and many others use. It keeps every content as it is, to the last space."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`tokens` in the order of their ids: 256 bytes, one per merge, the special ones. `merges`: best first."""

    tokens: tuple[str, ...]
    merges: tuple[Pair, ...]
    whole_words: frozenset[int]
    """Ids of the tokens that are " word" for a word of the list."""

    def token_id(self, token: str) -> int:
        return self.tokens.index(token)


def byte_symbols() -> list[str]:
    """The printable character that stands for each byte in a GPT-2 vocabulary, by byte value.

    A byte that is a visible Latin-1 character stands for itself; the others, in order, get U+0100, U+0101, ...
    """
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) if byte in visible else chr(256 + hidden.index(byte)) for byte in range(256)]


def train(words: Sequence[str]) -> Vocabulary:
    """Learn merges from `words`, each counted once, until no pair is left to merge.

    Ties between equally frequent pairs go to the greater pair, so the result depends on the words alone.
    """
    symbols = byte_symbols()
    spellings = [[symbols[byte] for byte in f" {word}".encode()] for word in dict.fromkeys(words)]
    whole = {"".join(spelling) for spelling in spellings}
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, spelling in enumerate(spellings):
        for pair in pairwise(spelling):
            counts[pair] += 1
            places[pair].add(number)

    merges: list[Pair] = []
    while counts:
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        for number in sorted(places[best]):
            for pair in pairwise(spellings[number]):
                counts[pair] -= 1
                places[pair].discard(number)
                if not counts[pair]:
                    del counts[pair]
            spellings[number] = merged(spellings[number], best)
            for pair in pairwise(spellings[number]):
                counts[pair] += 1
                places[pair].add(number)

    tokens = (*symbols, *dict.fromkeys(left + right for left, right in merges), *SPECIAL_TOKENS)
    whole_words = frozenset(number for number, token in enumerate(tokens) if token in whole)
    return Vocabulary(tokens=tokens, merges=tuple(merges), whole_words=whole_words)


def merged(spelling: Sequence[str], pair: Pair) -> list[str]:
    """`spelling` with each occurrence of `pair`, from the left, made one symbol."""
    result: list[str] = []
    position = 0
    while position < len(spelling):
        if tuple(spelling[position : position + 2]) == pair:
            result.append("".join(pair))
            position += 2
        else:
            result.append(spelling[position])
            position += 1
    return result
