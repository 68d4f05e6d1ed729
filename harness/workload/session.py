"""Sessions: sequences of turns made of segments, with every length and every shared part known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of prompt text that is shared as a whole or not at all.

    Two segments with one `content_id` have the same text on every worker and every machine.
    """

    kind: str
    """system, tools, preamble, document, user, observation or reply."""
    content_id: int
    """int64; also spells the first words of the text, see `harness.workload.content`."""
    tokens: int
    """Length of the text in the engine's tokens."""
    document: int | None = None
    """Number of the corpus document whose text this is; None: words drawn from the content id."""
    text: str | None = None
    """The text itself where it is not made from the id: a live reply of the engine."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message: `role` is system, user or assistant; its content is its segments end to end."""

    role: str
    segments: tuple[Segment, ...]

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a session."""

    index: int
    question: Message
    """What this turn adds to the conversation: a user's question, or a tool's observation."""
    output_tokens: int
    """How many tokens to ask for."""
    reply: Message
    """The scripted answer (of `output_tokens` tokens), which `replies: scripted` appends in place of the engine's."""
    think_time_s: float
    """Pause between the end of the turn before (for turn 0: the start of the session) and this one's send."""


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: `opening` stands before every turn; earlier turns follow it if `keeps_history`."""

    number: int
    kind: str
    opening: tuple[Message, ...]
    turns: tuple[Turn, ...]
    keeps_history: bool

    def prompt(self, turn: int, replies: Sequence[Message]) -> tuple[Message, ...]:
        """The messages of turn number `turn`, given the `turn` replies (scripted or live) before it."""
        history: list[Message] = []
        if self.keeps_history:
            for earlier, reply in zip(self.turns[:turn], replies, strict=True):
                history += (earlier.question, reply)
        return (*self.opening, *history, self.turns[turn].question)
