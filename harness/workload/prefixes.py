"""What a cache without limits could serve: the prefixes that prompts have in common, from their paths."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.workload.session import Segment, Session


class Prefixes:
    """All prefixes of the prompts that were added: a radix tree over pieces (content id, tokens).

    Of two pieces with one id the shorter is a prefix of the longer; different pieces share nothing.
    """

    def __init__(self) -> None:
        self.tokens = 0
        """Different prefix tokens: the room that all prompts take in a cache that keeps each prefix once."""
        self._root: dict[tuple[int, int], _Edge] = {}

    def add(self, segments: Iterable[Segment]) -> int:
        """Add a prompt; returns how many of its leading tokens an earlier one had."""
        node, known = self._root, 0
        for segment in segments:
            offset, left = 0, segment.tokens
            while left:
                key = (segment.content_id, offset)
                edge = node.get(key)
                if edge is None:
                    edge = node[key] = _Edge(left)
                    self.tokens += left
                    taken = left
                else:
                    taken = min(left, edge.tokens)
                    edge.split(key, taken)
                    known += taken
                node = edge.below
                offset, left = offset + taken, left - taken
        return known


class _Edge:
    """A run of tokens, and what follows it by (content id, tokens of that content before)."""

    __slots__ = ("below", "tokens")

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.below: dict[tuple[int, int], _Edge] = {}

    def split(self, key: tuple[int, int], tokens: int) -> None:
        """Let the run end after `tokens`; `key` is its own."""
        if tokens < self.tokens:
            rest = _Edge(self.tokens - tokens)
            rest.below, self.below = self.below, {(key[0], key[1] + tokens): rest}
            self.tokens = tokens


class Reuse(NamedTuple):
    """Sums over all requests of some sessions, without the template's tokens, with scripted replies."""

    requests: int
    prompt_tokens: int
    new_tokens: int
    """Those that no earlier request began with. The sum is the same in whatever order requests are sent."""

    @property
    def share(self) -> float:
        """Share of the prompt tokens that a cache without limits serves, to the token: 1 - new / prompt tokens."""
        return 1 - self.new_tokens / self.prompt_tokens


def planned_reuse(sessions: Iterable[Session]) -> Reuse:
    """What requests of these sessions and their sub-agents, sent to an empty cache, can reuse of each other."""
    prefixes = Prefixes()
    requests = prompt_tokens = 0
    for session in (one for each in sessions for one in each.with_sub_agents()):
        for turn in session.turns:
            segments = [segment for message in session.scripted_prompt(turn.index) for segment in message.segments]
            prefixes.add(segments)
            requests += 1
            prompt_tokens += sum(segment.tokens for segment in segments)
    return Reuse(requests, prompt_tokens, prefixes.tokens)
