"""vLLM's blocks as its scheduler takes them."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cache.block_chain import TokenChain
from harness.cache.block_pool import BlockAdmission, BlockPool
from harness.sim.generation import Generation
from harness.sim.request import Request


@dataclass(slots=True, eq=False)
class BlockHold:
    """The full blocks of a sequence, and those of the pool that it has."""

    chain: TokenChain
    admission: BlockAdmission | None = None
    """None: it waits."""
    quiet_to: int = 0
    """Up to this many tokens it needs no block, and fills none."""


class BlockCache:
    """A pool of blocks; they are entered when the step that computes them is scheduled, as vLLM does it."""

    def __init__(self, capacity_tokens: int, block_tokens: int, caching: bool) -> None:
        self._block_tokens = block_tokens
        self._blocks = capacity_tokens // block_tokens
        self._caching = caching
        self._pool = BlockPool(self._blocks, block_tokens)
        self._evicted_blocks = 0

    @property
    def capacity_tokens(self) -> int:
        """In all blocks but the null block, which is never used."""
        return (self._blocks - 1) * self._block_tokens

    @property
    def used_tokens(self) -> int:
        return self._pool.held_blocks * self._block_tokens

    @property
    def evictable_tokens(self) -> int:
        return (self._pool.occupied_blocks - self._pool.held_blocks) * self._block_tokens

    @property
    def evicted_tokens(self) -> int:
        return (self._evicted_blocks + self._pool.evicted_blocks) * self._block_tokens

    def hold(self, generation: Generation) -> BlockHold:
        return BlockHold(TokenChain(self._block_tokens, generation.namespace))

    def admit(self, request: Request[BlockHold], step_tokens: int) -> bool:
        """Take what is cached of its sequence, and the blocks of its next `step_tokens`; False: it must wait."""
        hold = request.hold
        self._follow(request)
        admission = self._pool.try_admit(hold.chain, request.tokens, step_tokens, request.generation.reads_cache)
        if admission is None:
            return False
        hold.admission, hold.quiet_to = admission, 0
        request.computed = admission.cached_tokens
        return True

    def grow(self, request: Request[BlockHold], tokens: int) -> bool:
        """Have blocks for its first `tokens`; False: there are not enough of them."""
        hold = request.hold
        if tokens <= hold.quiet_to:
            return True
        assert hold.admission is not None
        self._follow(request)
        if not self._pool.try_grow(hold.admission, tokens):
            return False
        in_block = tokens % self._block_tokens
        hold.quiet_to = tokens + (self._block_tokens - 1 - in_block if in_block else 0)
        return True

    def release(self, request: Request[BlockHold]) -> None:
        """Give its blocks back; those that can be found stay so until they are taken."""
        hold = request.hold
        if hold.admission is not None:
            self._pool.abandon(hold.admission)
            hold.admission = None

    def clear(self) -> None:
        self._evicted_blocks += self._pool.evicted_blocks
        self._pool.clear()

    def _follow(self, request: Request[BlockHold]) -> None:
        """Extend the chain by what was said since; without caching it stays empty, and nothing is found."""
        chain, generation = request.hold.chain, request.generation
        if not self._caching:
            return
        if not chain.tokens:
            chain.extend(generation.prompt_ids)
        if chain.tokens < request.tokens:
            chain.extend(generation.output_ids[chain.tokens - request.prompt_tokens :])
