"""Arrangement faults: known ways to send a prompt so that a prefix cache finds less of it, one request at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.workload.content import LEAST_ID_WORDS, content_id
from harness.workload.distribution import Draws
from harness.workload.session import Cut, Message, Segment, Session

STAMP_TOKENS = 6
"""Tokens that a timestamp or a request id takes. Of a timestamp the first third, the date, is always the same."""
PIECES = 8
"""Tools are moved about in so many pieces, and so are the passages of a document."""

FaultKind = Literal[
    "timestamp-first",
    "request-id-first",
    "tools-shuffled",
    "preamble-first",
    "passages-reranked",
    "whitespace-changed",
]


class Fault(BaseModel):
    """An arrangement fault, and how many requests have it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: FaultKind = Field(description="What is wrong with the prompts.")
    rate: float = Field(default=1.0, strict=True, ge=0, le=1, description="Share of the requests that have the fault.")


@dataclass(frozen=True, slots=True)
class PromptFault:
    """A fault of one request. All that it draws follows from the scenario's seed, the session and the turn."""

    kind: FaultKind
    scenario_seed: int
    seed: str
    """Goes into new texts only."""
    session: int
    turn: int

    def is_drawn(self, rate: float) -> bool:
        """Whether the request is among the share `rate` of all; the same requests whatever the kind of fault."""
        return self._stream("hit").random() < rate

    def apply(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The prompt with the fault, which lies in its first message and leaves the prompt's length as it was."""
        first, *rest = messages
        own = content_id(self.seed, "fault", self.session, self.turn)
        match self.kind:
            case "timestamp-first":
                segments = _stamped(first.segments, own, content_id(self.seed, "fault", "date"))
            case "request-id-first":
                segments = _stamped(first.segments, own, None)
            case "tools-shuffled":
                segments = _in_pieces(first.segments, "tools", self._stream("place"))
            case "passages-reranked":
                segments = _in_pieces(first.segments, "document", self._stream("place"))
            case "preamble-first":
                segments = tuple(sorted(first.segments, key=lambda segment: segment.kind != "preamble"))
            case "whitespace-changed":
                segments = _with_one_change(first.segments, self._stream("place"))
        return (Message(first.role, segments), *rest)

    def _stream(self, purpose: str) -> Random:
        return Draws(self.scenario_seed, "fault", self.session, self.turn).stream(purpose)


def with_faults(session: Session, fault: Fault | None, scenario_seed: int, seed: str) -> Session:
    """The session with the faults that its turns and its sub-agents' have; a fault that would change nothing counts as
    none."""
    if fault is None:
        return session
    drawn = [PromptFault(fault.kind, scenario_seed, seed, session.number, turn.index) for turn in session.turns]
    first = (session.opening or (session.turns[0].question,))[:1]
    faults = tuple(each if each.is_drawn(fault.rate) and each.apply(first) != first else None for each in drawn)
    sub_agents = tuple(
        replace(each, session=with_faults(each.session, fault, scenario_seed, seed)) for each in session.sub_agents
    )
    return replace(session, faults=faults, sub_agents=sub_agents)


def _stamped(segments: Sequence[Segment], own: int, date: int | None) -> tuple[Segment, ...]:
    """The first tokens give way to a text that no other request has, after a date that all have if one is given."""
    first, *rest = segments
    stamp_tokens = min(STAMP_TOKENS, first.tokens)
    date_tokens = stamp_tokens // 3 if date is not None else 0
    stamp = [Segment("fault", own, stamp_tokens - date_tokens)]
    if date is not None and date_tokens:
        stamp.insert(0, Segment("fault", date, date_tokens))
    return (*stamp, *_piece(first, stamp_tokens, first.tokens), *rest)


def _in_pieces(segments: Sequence[Segment], kind: str, random: Random) -> tuple[Segment, ...]:
    """The segment of this kind in pieces of about one length, in a drawn order that is not the usual one."""
    return tuple(
        part for segment in segments for part in (_shuffled(segment, random) if segment.kind == kind else (segment,))
    )


def _shuffled(segment: Segment, random: Random) -> tuple[Segment, ...]:
    pieces = min(PIECES, segment.tokens)
    usual = list(range(pieces))
    order = usual
    while order == usual and pieces > 1:
        order = sorted(usual, key=lambda _: random.random())
    kept = next((place for place in usual if order[place] != place), pieces)
    borders = [piece * segment.tokens // pieces for piece in range(pieces + 1)]
    moved = [part for piece in order[kept:] for part in _piece(segment, borders[piece], borders[piece + 1])]
    return (*_piece(segment, 0, borders[kept]), *moved)


def _with_one_change(segments: Sequence[Segment], random: Random) -> tuple[Segment, ...]:
    """One token, drawn among all, is another."""
    place = int(random.random() * sum(segment.tokens for segment in segments))
    changed: list[Segment] = []
    for segment in segments:
        if 0 <= place < segment.tokens:
            changed += _changed(segment, place)
        else:
            changed.append(segment)
        place -= segment.tokens
    return tuple(changed)


def _changed(segment: Segment, place: int) -> tuple[Segment, ...]:
    if segment.document is not None:
        # Only the words that spell its id can be exchanged one by one; what follows is real text.
        place %= min(LEAST_ID_WORDS - 1, segment.tokens)
    source = Cut(segment.content_id, segment.tokens, place, changed=True)
    identity = content_id("changed", segment.content_id, place)
    other = replace(segment, content_id=identity, tokens=1, cut=source)
    return (*_piece(segment, 0, place), other, *_piece(segment, place + 1, segment.tokens))


def _piece(segment: Segment, start: int, end: int) -> tuple[Segment, ...]:
    """The segment from token `start` up to token `end`; nothing if that is empty.

    A piece at the beginning has the id of the whole, of whose text it is a prefix.
    """
    if start == end:
        return ()
    if start == 0:
        return (segment if end == segment.tokens else replace(segment, tokens=end, document=None),)
    cut = Cut(segment.content_id, segment.tokens, start)
    identity = content_id("piece", segment.content_id, start)
    return (replace(segment, content_id=identity, tokens=end - start, cut=cut),)
