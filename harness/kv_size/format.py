"""How the numbers of a vector are packed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class Format:
    """`bits` a number, and what it takes to read them: scales (and zero points) of each block or the whole vector."""

    bits: int
    block: int = 1
    """Numbers that share a scale; a vector is whole blocks."""
    block_bytes: int = 0
    vector_bytes: int = 0
    in_words: bool = False
    """Room is made for whole numbers in words of 32 bits, though they are then packed without gaps."""

    @property
    def bytes_per_element(self) -> Fraction:
        """Without what is stored once a vector."""
        return Fraction(self.bits, 8) + Fraction(self.block_bytes, self.block)

    def bytes_of(self, size: int) -> int:
        """Bytes of a vector of `size` numbers."""
        return -(-size * self.bits // 8) + size // self.block * self.block_bytes + self.vector_bytes

    def objection(self, size: int) -> str | None:
        """Why a vector of `size` numbers cannot be packed so; None: it can."""
        if size % self.block:
            return f"blocks of {self.block} do not divide it"
        if self.in_words and size // (WORD_BITS // self.bits) * WORD_BITS != size * self.bits:
            return f"numbers of {self.bits} bits do not fill its words of {WORD_BITS}"
        return None


PLAIN = Format(16)
"""What models compute with: float16 or bfloat16."""
