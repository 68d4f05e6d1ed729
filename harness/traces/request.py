"""What every trace is read into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.cache.base import Prompt


@dataclass(frozen=True, slots=True)
class Parent:
    """Where a session comes from that another session starts: a sub-agent's.

    Requests of a session are numbered from 0, in its own order.
    """

    session: str
    after: int
    """The sub-agent starts when the answer to this request of `session` is complete."""
    before: int | None
    """This request of `session` waits for the end of the sub-agent; None: none does."""


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One request of a trace."""

    time_s: float | None
    """When it was sent, from the start of the trace; None: the trace does not tell."""
    prompt: Prompt
    output_tokens: int | None
    """Length of the answer; None: the trace does not tell."""
    session: str | None = None
    """The requests of one session follow each other, each after the answer to the one before. None: not known."""
    parent: Parent | None = None
    """The same for all requests of a session; None: nobody else starts it."""
    think_time_s: float | None = None
    """From the end of what it waits for (the answer before it, sub-agents too, or for a sub-agent's first request its
    parent's answer) to its send; None: not known."""

    @property
    def prompt_tokens(self) -> int:
        return sum(tokens for _, tokens in self.prompt)


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out of a trace because it cannot be used."""

    entries: int
    """Lines, or requests of a file that is one JSON object."""
    first: str | None
    """What was wrong with the first of them, and where; None if there is none."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The requests of one file, in the order in which they were sent."""

    name: str
    """The file's."""
    format: str
    """For people."""
    block_tokens: int
    """The trace tells sharing in steps of this length."""
    requests: Sequence[TraceRequest]
    """One at least."""
    skipped: Skipped
    notes: Sequence[str] = ()
    """What a reader of its numbers must know: how lengths were found, say."""
