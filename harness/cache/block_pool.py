"""vLLM's prefix cache: a pool of blocks of equal size, found by the chained hash of what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.cache.base import Prompt
from harness.cache.block_chain import BlockChain, BlockNumbers, TokenChain
from harness.cache.block_room import EndlessRoom, LimitedRoom, Room
from harness.cache.prompt import beginning, tokens
from harness.errors import InputError


@dataclass(slots=True, eq=False)
class BlockAdmission:
    """The blocks that one request holds, from its first token on."""

    prompt_tokens: int
    chain: BlockChain | TokenChain
    blocks: list[int] = field(default_factory=list)
    cached_tokens: int = 0
    entered: int = 0
    """How many of the blocks can be found by others."""


class BlockPool:
    """Rules of vLLM 0.32 (v1); for one request at a time they give the engine's own counts to the token.

    - One block of the pool is never used (the null block).
    - A look-up finds the leading full blocks that are known, at most (prompt - 1) // block of them. What it finds is
      taken out of the queue of free blocks.
    - Blocks for the rest of the prompt are taken at once, then one whenever the answer crosses a block's border, from
      the front of the queue. A block that could be found until then no longer can: it is evicted.
    - A block is found from when it is full. The answer's last token is never stored. A block that holds the same as
      another (the last block of a repeated prompt) takes room of its own.
    - At the end the blocks are freed, last one first: those that can be found go to the back of the queue, the others
      to its front.

    When several requests are under way, three things are taken simpler than they are:

    - The engine enters a block when it schedules its tokens, before they are computed. So `admit` enters all full
      blocks of the prompt, or those of the first `step_tokens` uncached tokens where the engine cuts long prompts
      into steps; `prefilled` enters the others.
    - The blocks of an answer are all taken and entered by `finish`.
    - The engine lets a request wait until there is room. A log says when a request was sent, not whether it waited,
      so nothing waits here: missing blocks are lent, and paid back by the first blocks that are freed.

    Who runs an engine's steps himself needs none of these: `try_admit` and `try_grow` take and enter blocks step by
    step, and say when there are none; `abandon` frees them.
    """

    def __init__(self, blocks: int | None, block_tokens: int, step_tokens: int | None = None) -> None:
        """A pool of `blocks` (as the engine counts them; None: without end) of `block_tokens` tokens each.

        `step_tokens`: prompt tokens that the engine computes in one step; None: all. Raises InputError.
        """
        if block_tokens < 1 or (blocks is not None and blocks < 2):
            raise InputError(
                f"A pool of {blocks} blocks of {block_tokens} tokens holds nothing: "
                "give at least 2 blocks (one is never used) of at least 1 token."
            )
        self._blocks = blocks
        self._block_tokens = block_tokens
        self._step_tokens = step_tokens
        self.clear()

    def clear(self) -> None:
        self._numbers = BlockNumbers(self._block_tokens)
        self._room: Room = EndlessRoom() if self._blocks is None else LimitedRoom(self._blocks - 1)

    @property
    def occupied_blocks(self) -> int:
        """Blocks that a request holds or that can be found. A pool without end counts those that can be found."""
        return self._room.occupied

    @property
    def held_blocks(self) -> int:
        """Blocks that requests hold."""
        return self._room.held

    @property
    def evicted_blocks(self) -> int:
        """Blocks that could be found until they were taken, since the start or the last `clear`."""
        return self._room.evicted

    def try_admit(
        self, chain: TokenChain, length: int, step_tokens: int, reads_cache: bool = True
    ) -> BlockAdmission | None:
        """Admit a request of `length` tokens, of which one step computes `step_tokens` at most; None: it must wait.

        It has to wait unless all its tokens find room, though only the blocks of the first step are taken. `chain` has
        its full blocks, and grows with it; an empty one has nothing that is found or entered.
        """
        asked = chain.blocks[: (length - 1) // self._block_tokens] if reads_cache else []
        found = self._room.known(asked)
        if -(-length // self._block_tokens) - found + self._room.unheld(asked[:found]) > self._room.free:
            return None
        cached = found * self._block_tokens
        admission = BlockAdmission(length, chain, self._room.reuse(asked[:found]), cached, found)
        self.try_grow(admission, min(length, cached + step_tokens))
        return admission

    def try_grow(self, admission: BlockAdmission, stored_tokens: int) -> bool:
        """Take the blocks for `stored_tokens`, and enter those that they fill; False: there are not enough of them."""
        missing = -(-stored_tokens // self._block_tokens) - len(admission.blocks)
        if missing > self._room.free:
            return False
        if missing > 0:
            admission.blocks += self._room.take(missing)
        full = min(stored_tokens // self._block_tokens, len(admission.chain.blocks))
        if full > admission.entered:
            new = slice(admission.entered, full)
            self._room.enter(admission.blocks[new], admission.chain.blocks[new])
            admission.entered = full
        return True

    def peek(self, prompt: Prompt) -> int:
        """Cached tokens that `admit` would find now; nothing is taken or touched."""
        chain = BlockChain(self._numbers)
        chain.extend(prompt)
        findable = chain.blocks[: (tokens(prompt) - 1) // self._block_tokens]
        return self._room.known(findable) * self._block_tokens

    def admit(self, prompt: Prompt) -> BlockAdmission:
        length = tokens(prompt)
        chain = BlockChain(self._numbers)
        chain.extend(prompt)
        admission = BlockAdmission(length, chain)
        admission.blocks = self._room.reuse(admission.chain.blocks[: (length - 1) // self._block_tokens])
        admission.entered = len(admission.blocks)
        admission.cached_tokens = admission.entered * self._block_tokens
        self._grow(admission, length)
        first_step = length if self._step_tokens is None else admission.cached_tokens + self._step_tokens
        self._enter(admission, min(length, first_step))
        return admission

    def prefilled(self, admission: BlockAdmission) -> None:
        self._enter(admission, admission.prompt_tokens)

    def finish(self, admission: BlockAdmission, output: Prompt) -> None:
        answer = beginning(output, tokens(output) - 1)
        stored_tokens = admission.prompt_tokens + tokens(answer)
        assert isinstance(admission.chain, BlockChain)
        admission.chain.extend(answer)
        self._grow(admission, stored_tokens)
        self._enter(admission, stored_tokens)
        self._room.release(admission.blocks)

    def abandon(self, admission: BlockAdmission) -> None:
        """What was entered stays; the answer so far is not known, and is left out."""
        self._room.release(admission.blocks)

    def _grow(self, admission: BlockAdmission, stored_tokens: int) -> None:
        needed = -(-stored_tokens // self._block_tokens)
        admission.blocks += self._room.take(needed - len(admission.blocks))

    def _enter(self, admission: BlockAdmission, computed_tokens: int) -> None:
        full = computed_tokens // self._block_tokens
        new = slice(admission.entered, full)
        self._room.enter(admission.blocks[new], admission.chain.blocks[new])
        admission.entered = full
