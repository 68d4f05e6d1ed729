"""mlx-lm's store of entries once more, on plain token lists, sentence by sentence as its rules read."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import takewhile

Tokens = tuple[int, ...]


def lcp(first: Tokens, second: Tokens) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


@dataclass(eq=False)
class PlainRequest:
    prompt: Tokens
    cached: int
    system: int
    bytes: int


@dataclass
class PlainEntries:
    size: int
    limit_bytes: int | None = None
    bytes_per_token: int = 0
    queues: dict[str, list[Tokens]] = field(default_factory=lambda: {"assistant": [], "user": [], "system": []})
    running: list[PlainRequest] = field(default_factory=list)
    evicted: int = 0

    def entries(self) -> list[Tokens]:
        return [entry for queue in self.queues.values() for entry in queue]

    def start(self, prompt: Tokens, system: int = 0) -> PlainRequest:
        longest = max((lcp(entry, prompt) for entry in self.entries()), default=0)
        copied = 0
        if longest:
            copied = min(len(entry) for entry in self.entries() if lcp(entry, prompt) == longest)
        request = PlainRequest(prompt, min(len(prompt) - 1, longest), system, copied * self.bytes_per_token)
        self.running.append(request)
        if self.limit_bytes is not None:
            active = sum(one.bytes for one in self.running)
            while sum(map(len, self.entries())) * self.bytes_per_token > max(0, self.limit_bytes - active):
                self.evict()
        return request

    def first_token(self, request: PlainRequest) -> None:
        before_last = len(request.prompt) - 1
        if request.cached < request.system:
            self.add(request.prompt[: request.system], "system")
        if max(request.cached, request.system) < before_last:
            self.add(request.prompt[:before_last], "user")
        request.bytes = len(request.prompt) * self.bytes_per_token

    def end(self, request: PlainRequest, output: Tokens) -> None:
        self.running.remove(request)
        self.add(request.prompt + output, "assistant")

    def give_up(self, request: PlainRequest) -> None:
        self.running.remove(request)

    def add(self, tokens: Tokens, kind: str) -> None:
        for name, queue in self.queues.items():
            self.queues[name] = [entry for entry in queue if entry != tokens[: len(entry)]]
        self.queues[kind].append(tokens)
        if len(self.entries()) > self.size:
            self.evict()

    def evict(self) -> None:
        assistant, user, system = self.queues.values()
        if assistant and len(assistant) >= len(user):
            assistant.pop(0)
        elif user and len(user) >= len(system):
            user.pop(0)
        else:
            system.pop(0)
        self.evicted += 1
