"""What a simulated engine says: words by chance, the same for the same prompt."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import count

from harness.errors import InputError

_PIECE = struct.Struct("<32H")
"""Numbers that one hash gives."""
_COUNTER = struct.Struct("<Q")
MOST_WORDS = 2**16


class Answers:
    """Endless answers over a list of words.

    The token at a place is a function of the seed, the prompt's ids and the place alone: not of the cache, of other
    requests, or of how the engine computed it. The prompt is hashed once (BLAKE2b); a hash of that and a counter then
    gives 32 tokens at a time.
    """

    def __init__(self, seed: int, words: Sequence[int]) -> None:
        """`words`: token ids, 1 to 65,536 of them, as two bytes choose among them; raises InputError otherwise."""
        if not 1 <= len(words) <= MOST_WORDS:
            raise InputError(f"Answers cannot be made of {len(words)} words: give 1 to {MOST_WORDS}.")
        self._words = tuple(words)
        self._seed = str(seed).encode()

    def to(self, prompt_ids: Sequence[int]) -> Iterator[int]:
        """The tokens of the answer to a prompt, without end."""
        prompt = struct.pack(f"<{len(prompt_ids)}I", *prompt_ids)
        key = blake2b(prompt, digest_size=32, key=blake2b(self._seed).digest()).digest()
        words, size = self._words, len(self._words)
        for number in count():
            for drawn in _PIECE.unpack(blake2b(_COUNTER.pack(number), key=key).digest()):
                yield words[drawn % size]
