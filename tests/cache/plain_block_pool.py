"""vLLM's block pool on plain tokens, rule by rule as the engine does it: slow, and with nothing clever in it."""

from __future__ import annotations

from dataclasses import dataclass, field

Tokens = tuple[int, ...]


@dataclass(eq=False)
class PlainBlock:
    held: Tokens | None = None
    """All tokens from the sequence's first to the block's last: what the chained hash stands for. None: no hash."""
    users: int = 0


@dataclass(eq=False)
class PlainRequest:
    tokens: Tokens
    blocks: list[PlainBlock] = field(default_factory=list)
    cached_tokens: int = 0


class PlainBlockPool:
    def __init__(self, blocks: int, block_tokens: int, step_tokens: int | None = None) -> None:
        self.size = block_tokens
        self.step_tokens = step_tokens
        self.blocks = [PlainBlock() for _ in range(blocks)]
        self.blocks.pop(0)  # the null block
        self.usable = len(self.blocks)
        self.free = list(self.blocks)
        self.hashed: list[PlainBlock] = []

    @property
    def occupied_blocks(self) -> int:
        return sum(block.users > 0 or block.held is not None for block in self.blocks)

    def admit(self, prompt: Tokens) -> PlainRequest:
        request = PlainRequest(prompt)
        for number in range((len(prompt) - 1) // self.size):
            prefix = prompt[: (number + 1) * self.size]
            equal = [block for block in self.hashed if block.held == prefix]
            if not equal:
                break
            if equal[0].users == 0:
                self.free.remove(equal[0])
            equal[0].users += 1
            request.blocks.append(equal[0])
        request.cached_tokens = len(request.blocks) * self.size
        while len(request.blocks) * self.size < len(prompt):
            request.blocks.append(self.take())
        step = len(prompt) if self.step_tokens is None else self.step_tokens
        self.fill(request, min(len(prompt), request.cached_tokens + step))
        return request

    def prefilled(self, request: PlainRequest) -> None:
        self.fill(request, len(request.tokens))

    def finish(self, request: PlainRequest, output: Tokens) -> None:
        for token in output[:-1]:
            if len(request.tokens) == len(request.blocks) * self.size:
                request.blocks.append(self.take())
            request.tokens += (token,)
            self.fill(request, len(request.tokens))
        self.abandon(request)

    def abandon(self, request: PlainRequest) -> None:
        for block in reversed(request.blocks):
            block.users -= 1
            if block.users:
                continue
            if len(self.blocks) > self.usable:
                self.blocks.remove(block)
                if block.held is not None:
                    self.hashed.remove(block)
            elif block.held is not None:
                self.free.append(block)
            else:
                self.free.insert(0, block)

    def take(self) -> PlainBlock:
        if not self.free:
            self.blocks.append(PlainBlock())
            self.free.append(self.blocks[-1])
        block = self.free.pop(0)
        if block.held is not None:
            self.hashed.remove(block)
            block.held = None
        block.users = 1
        return block

    def fill(self, request: PlainRequest, computed: int) -> None:
        for number in range(computed // self.size):
            block = request.blocks[number]
            if block.held is None:
                block.held = request.tokens[: (number + 1) * self.size]
                self.hashed.append(block)
