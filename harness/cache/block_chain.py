"""Full blocks of a prompt, known by what they hold and by all that stands before them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from harness.cache.base import Prompt

Piece = tuple[int, int, int]
"""(item id, tokens of the item before the piece, tokens of the piece)."""

_BLOCKS_OF_AN_ITEM = 2**32


class BlockNumbers:
    """Numbers of full blocks: two are equal exactly if their tokens, and all tokens before them, are.

    They stand for the chained hashes of the engine. They are never forgotten: some 0.3 kB for each block in which an
    item begins.
    """

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self._known: dict[tuple[int, tuple[Piece, ...]], int] = {}

    def after(self, number: int, pieces: tuple[Piece, ...]) -> int:
        """The number of the block of `pieces` which follows block `number` (0: it is the first).

        A block within one item that began before it has the next number; so there is room left between the others.
        """
        return self._known.setdefault((number, pieces), (len(self._known) + 1) * _BLOCKS_OF_AN_ITEM)


class BlockChain:
    """The full blocks of a sequence of tokens that grows at its end."""

    def __init__(self, numbers: BlockNumbers) -> None:
        self.blocks: list[int] = []
        """Their numbers, in order."""
        self._numbers = numbers
        self._last = 0
        self._pieces: list[Piece] = []
        self._filled_tokens = 0

    def extend(self, items: Prompt) -> None:
        """Append items; the work depends on their number and on that of the blocks, not on the tokens."""
        block_tokens = self._numbers.block_tokens
        for identity, length in items:
            used = 0
            if self._filled_tokens:
                used = min(block_tokens - self._filled_tokens, length)
                self._pieces.append((identity, 0, used))
                self._filled_tokens += used
                if self._filled_tokens < block_tokens:
                    continue
                self._close()
            whole, rest = divmod(length - used, block_tokens)
            if whole and not used:
                self._pieces.append((identity, 0, block_tokens))
                self._close()
                whole -= 1
            if whole:
                self.blocks += range(self._last + 1, self._last + whole + 1)
                self._last += whole
            if rest:
                self._pieces.append((identity, length - rest, rest))
                self._filled_tokens = rest

    def _close(self) -> None:
        self._last = self._numbers.after(self._last, tuple(self._pieces))
        self.blocks.append(self._last)
        self._pieces.clear()
        self._filled_tokens = 0


class TokenChain:
    """The full blocks of a sequence of token ids that grows at its end, each known by a chained hash.

    It is for many long sequences: a block costs a third of a microsecond, and nothing is kept of blocks seen. Python's
    own hash of 64 bits serves, as the numbers never leave the process: among ten million blocks, the chance that any
    two are taken for one is 3e-6.
    """

    def __init__(self, block_tokens: int, namespace: str = "") -> None:
        """Chains of different namespaces (vLLM's `cache_salt`) have no block in common."""
        self.blocks: list[int] = []
        """Their numbers, in order."""
        self.tokens = 0
        """Tokens so far, those beyond the last full block included."""
        self._block_tokens = block_tokens
        self._last = hash(namespace)
        self._rest = array("I")

    def extend(self, ids: Sequence[int]) -> None:
        """Append tokens, ids below 2**32."""
        self.tokens += len(ids)
        self._rest.extend(ids)
        data, width = self._rest.tobytes(), self._rest.itemsize * self._block_tokens
        last, end = self._last, len(data) - len(data) % width
        for start in range(0, end, width):
            last = hash((last, data[start : start + width]))
            self.blocks.append(last)
        self._last = last
        del self._rest[: end // self._rest.itemsize]
