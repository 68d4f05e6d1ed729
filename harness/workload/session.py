"""Sessions: sequences of turns made of segments, with every length and every shared part known beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple, Protocol

LEVELS = {
    "template": "chat template",
    "system": "system prompt",
    "tools": "tool schemas",
    "preamble": "user preamble",
    "document": "long document",
    "user": "user message",
    "observation": "tool observation",
    "reply": "earlier reply",
    "block": "trace block",
    "fault": "arrangement fault",
}
"""Kind of segment -> its level where it is none of the sharing tree's. No level of a tree has a space in its name."""


class Cut(NamedTuple):
    """A piece of another segment's text, from word `start` on; all before it is words of one token each."""

    source: int
    """Content id of the whole text."""
    source_tokens: int
    start: int
    changed: bool = False
    """Each word of the piece is replaced with the next one of the lexicon."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of prompt text that is shared as a whole or not at all.

    Two segments with one `content_id` have the same text on every worker and every machine.
    """

    kind: str
    """shared, system, tools, preamble, document, user, observation, block (of a trace), reply, fault or template."""
    content_id: int
    """int64; also spells the first words of the text, see `harness.workload.content`, unless it is cut."""
    tokens: int
    """Length of the text in the engine's tokens."""
    document: int | None = None
    """Number of the corpus document whose text this is; None: words drawn from the content id."""
    text: str | None = None
    """The text itself where it is not made from the id: a live reply of the engine."""
    cut: Cut | None = None
    """Where the text is a piece of another segment's: which."""
    tree_level: str | None = None
    """Name of its level of the sharing tree; None: it is none of the tree's contents."""

    @property
    def level(self) -> str:
        """Where it stands in prompts, in words: the level of the sharing tree, or else what its kind is called."""
        return self.tree_level or LEVELS.get(self.kind, self.kind)


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
    """Pause between the end of what it waits for (the turn before it, and sub-agents; for turn 0 the start of the
    session) and its send."""
    due_s: float | None = None
    """When it is to be sent, from the start of the load, or at the end of what it waits for if that is later; None:
    `think_time_s` decides."""


class Rearrangement(Protocol):
    """How one request is sent otherwise than its session has it."""

    @property
    def kind(self) -> str:
        """Name of the arrangement fault."""
        ...

    def apply(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The prompt as it is sent: of the same length."""
        ...


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation: `opening` stands before every turn; earlier turns follow it if `keeps_history`."""

    number: int
    """No other session of the run has it, sub-agents included."""
    kind: str
    opening: tuple[Message, ...]
    turns: tuple[Turn, ...]
    keeps_history: bool
    tenant: str | None = None
    """Whom the session belongs to; None where no level of a sharing tree is the tenant's."""
    faults: tuple[Rearrangement | None, ...] = ()
    """What is done to each turn's prompt; empty: nothing to any of them."""
    sub_agents: tuple[SubAgent, ...] = ()
    """The sessions that this one starts."""

    @property
    def starts_s(self) -> float | None:
        """When it is to start, from the start of the load; None: as soon as somebody plays it."""
        return self.turns[0].due_s

    @property
    def shared_head(self) -> tuple[Segment, ...]:
        """The segments at the beginning of every prompt that other sessions can have too."""
        segments = (segment for message in self.opening for segment in message.segments)
        return tuple(takewhile(lambda segment: segment.kind != "preamble", segments))

    def with_sub_agents(self) -> Iterator[Session]:
        """This session, then those that it starts, each with those that it starts itself."""
        yield self
        for started in self.sub_agents:
            yield from started.session.with_sub_agents()

    def fault(self, turn: int) -> str | None:
        """Name of the arrangement fault that the prompt of turn number `turn` has; None: it has none."""
        rearrangement = self.faults[turn] if self.faults else None
        return rearrangement.kind if rearrangement else None

    def prompt(self, turn: int, replies: Sequence[Message]) -> tuple[Message, ...]:
        """The messages of turn number `turn`, given the `turn` replies (scripted or live) before it, as they are sent:
        with the turn's arrangement fault if it has one."""
        history: list[Message] = []
        if self.keeps_history:
            for earlier, reply in zip(self.turns[:turn], replies, strict=True):
                history += (earlier.question, reply)
        messages = (*self.opening, *history, self.turns[turn].question)
        rearrangement = self.faults[turn] if self.faults else None
        return rearrangement.apply(messages) if rearrangement else messages

    def scripted_prompt(self, turn: int) -> tuple[Message, ...]:
        """The messages of turn number `turn` after scripted replies."""
        return self.prompt(turn, [earlier.reply for earlier in self.turns[:turn]])


@dataclass(frozen=True, slots=True)
class SubAgent:
    """A session that another one, its parent, starts, and that runs at the same time as others of that parent."""

    session: Session
    after: int
    """It starts when the answer to this turn of its parent is complete."""
    before: int | None
    """This turn of its parent waits for its end; None: none does."""
