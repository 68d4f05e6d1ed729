"""SGLang's radix tree on plain tokens, rule by rule as the engine does it: slow, and with nothing clever in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Tokens = tuple[int, ...]


@dataclass(eq=False)
class PlainNode:
    run: Tokens
    parent: PlainNode | None
    children: list[PlainNode] = field(default_factory=list)
    stamp: int = 0
    locks: int = 0


@dataclass(eq=False)
class PlainRequest:
    prompt: Tokens
    cached_tokens: int
    locked: PlainNode
    own: int
    """Slots taken that are not the tree's."""
    is_prefilled: bool = False


class PlainRadixTree:
    def __init__(self, capacity: int | None, page: int = 1, chunk: int | None = None) -> None:
        self.capacity = capacity
        self.page = page
        self.chunk = chunk
        self.root = PlainNode((), None)
        self.time = 0
        self.evicted_tokens = 0
        self.running: list[PlainRequest] = []

    @property
    def stored_tokens(self) -> int:
        return sum(len(node.run) for node in self.nodes())

    def admit(self, prompt: Tokens) -> PlainRequest:
        node, cached = self.match(self.floor(prompt[:-1]))
        self.lock(node, +1)
        request = PlainRequest(prompt, cached, node, own=0)
        self.running.append(request)
        end = cached
        while end < len(prompt):
            before, end = end, len(prompt) if self.chunk is None else min(len(prompt), end + self.chunk)
            self.evict_for(end - before + (self.page if self.page > 1 else 0))
            request.own = -(-end // self.page) * self.page - cached
        return request

    def prefilled(self, request: PlainRequest) -> None:
        if self.chunk is not None:
            for end in range(request.cached_tokens + self.chunk, len(request.prompt), self.chunk):
                request.own -= self.insert(self.floor(request.prompt[:end]))
        request.own -= self.insert(self.floor(request.prompt))
        node, found = self.match(self.floor(request.prompt))
        assert found == len(self.floor(request.prompt))
        self.lock(request.locked, -1)
        self.lock(node, +1)
        request.locked = node
        request.own = self.page if len(request.prompt) % self.page else 0
        request.is_prefilled = True

    def finish(self, request: PlainRequest, output: Tokens) -> None:
        stored = request.prompt
        for token in output[:-1]:
            self.evict_for(self.page)
            if len(stored) % self.page == 0:
                request.own += self.page
            stored += (token,)
        self.insert(self.floor(stored))
        self.insert(self.floor(request.prompt))
        self.running.remove(request)
        self.lock(request.locked, -1)

    def abandon(self, request: PlainRequest) -> None:
        if not request.is_prefilled:
            self.prefilled(request)
        self.finish(request, ())

    def match(self, tokens: Tokens) -> tuple[PlainNode, int]:
        node, found = self.root, 0
        while True:
            child, common = self.child_of(node, tokens[found:])
            if child is None:
                break
            found += common
            if common < len(child.run):
                node = self.split(child, common)
                break
            node = child
        # The whole path is stamped, the deepest node with the newest time.
        path = list(self.path(node))
        for step in reversed(path):
            self.stamp(step)
        return node, found

    def insert(self, tokens: Tokens) -> int:
        """How many tokens are new to the tree."""
        node, found = self.root, 0
        while found < len(tokens):
            child, common = self.child_of(node, tokens[found:])
            if child is None:
                child = PlainNode(tokens[found:], node)
                node.children.append(child)
                self.stamp(child)
                return len(child.run)
            self.stamp(child)
            if common < len(child.run):
                child = self.split(child, common)
            node = child
            found += common
        return 0

    def child_of(self, node: PlainNode, tokens: Tokens) -> tuple[PlainNode | None, int]:
        """The child that begins with the first page of `tokens`, and how much of it they share, in whole pages."""
        for child in node.children:
            common = 0
            while common < min(len(child.run), len(tokens)) and child.run[common] == tokens[common]:
                common += 1
            common -= common % self.page
            if common:
                return child, common
        return None, 0

    def split(self, tail: PlainNode, length: int) -> PlainNode:
        assert tail.parent is not None
        head = PlainNode(tail.run[:length], tail.parent, [tail], locks=tail.locks)
        tail.parent.children.remove(tail)
        tail.parent.children.append(head)
        tail.run, tail.parent = tail.run[length:], head
        self.stamp(tail)
        self.stamp(head)
        return head

    def evict_for(self, need: int) -> None:
        while self.capacity is not None and self.free() < need:
            leaves = [node for node in self.nodes() if not node.children and not node.locks]
            if not leaves:
                return
            oldest = min(leaves, key=lambda node: node.stamp)
            assert oldest.parent is not None
            oldest.parent.children.remove(oldest)
            self.evicted_tokens += len(oldest.run)

    def free(self) -> int:
        assert self.capacity is not None
        return self.capacity - self.stored_tokens - sum(request.own for request in self.running)

    def lock(self, node: PlainNode, change: int) -> None:
        for step in self.path(node):
            step.locks += change

    def path(self, node: PlainNode) -> Iterator[PlainNode]:
        while node.parent is not None:
            yield node
            node = node.parent

    def nodes(self) -> Iterator[PlainNode]:
        """All but the root."""
        waiting = list(self.root.children)
        while waiting:
            node = waiting.pop()
            waiting += node.children
            yield node

    def stamp(self, node: PlainNode) -> None:
        self.time += 1
        node.stamp = self.time

    def floor(self, tokens: Tokens) -> Tokens:
        return tokens[: len(tokens) // self.page * self.page]
