"""Small scenarios of each kind, and what the tests take from sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.workload.content import common_words
from harness.workload.scenario import AgentLoop, LongDocument, MultiRound
from harness.workload.session import Message, Segment, Session


def agent_loop(**keys: object) -> AgentLoop:
    """A small agent loop; `keys` are added to it or replace what it has."""
    return AgentLoop.model_validate(
        {
            "name": "small",
            "kind": "agent-loop",
            "system_tokens": 12,
            "tools_tokens": 20,
            "task_tokens": {"uniform": [30, 60]},
            "steps": {"uniform": [2, 5]},
            "observation_tokens": {"uniform": [5, 9]},
            "output_tokens": {"uniform": [3, 8]},
            **keys,
        }
    )


def long_document(**keys: object) -> LongDocument:
    """Small documents; `keys` are added to them or replace what they have."""
    return LongDocument.model_validate(
        {
            "name": "small",
            "kind": "long-document",
            "system_tokens": 12,
            "documents": 20,
            "document_tokens": {"uniform": [100, 300]},
            "questions": {"uniform": [2, 4]},
            "question_tokens": {"uniform": [5, 9]},
            "output_tokens": {"uniform": [3, 8]},
            **keys,
        }
    )


def multi_round(**keys: object) -> MultiRound:
    """Small chats; `keys` are added to them or replace what they have."""
    return MultiRound.model_validate(
        {
            "name": "small",
            "kind": "multi-round",
            "system_tokens": 12,
            "preamble_tokens": {"uniform": [20, 40]},
            "rounds": {"uniform": [2, 5]},
            "user_tokens": {"uniform": [5, 9]},
            "output_tokens": {"uniform": [3, 8]},
            "think_time_s": {"uniform": [0.1, 0.2]},
            **keys,
        }
    )


def scripted_prompts(session: Session) -> list[tuple[Message, ...]]:
    """All prompts of a session whose replies are scripted."""
    replies = [turn.reply for turn in session.turns]
    return [session.prompt(turn.index, replies[: turn.index]) for turn in session.turns]


def tokens_of(messages: Iterable[Message]) -> list[tuple[object, ...]]:
    """A prompt token by token, as its texts have it: a token is named by the text it belongs to and its place there."""
    return [token for message in messages for segment in message.segments for token in _tokens_of(segment)]


def _tokens_of(segment: Segment) -> list[tuple[object, ...]]:
    if segment.cut is None:
        return [(segment.content_id, place) for place in range(segment.tokens)]
    source, _, start, changed = segment.cut
    name = (source, "changed") if changed else (source,)
    return [(*name, place) for place in range(start, start + segment.tokens)]


def sharing_by_tokens(sessions: Iterable[Session]) -> float:
    """The share of prompt tokens that were sent before, looked up token by token."""
    known: dict[object, dict[object, object]] = {}
    total = new = 0
    for session in sessions:
        for prompt in scripted_prompts(session):
            node: Any = known
            for token in tokens_of(prompt):
                total += 1
                new += token not in node
                node = node.setdefault(token, {})
    return 1 - new / total


def pairs(path: Iterable[Segment]) -> list[tuple[int, int]]:
    """(content id, tokens) of each segment, as a run's rows have them."""
    return [(segment.content_id, segment.tokens) for segment in path]


def shared_by_paths(path_a: list[tuple[int, int]], path_b: list[tuple[int, int]], lexicon_size: int) -> int:
    """Leading tokens that two prompts share: equal entries, then what the next two ids spell alike."""
    shared = 0
    for (id_a, tokens_a), (id_b, tokens_b) in zip(path_a, path_b, strict=False):
        if id_a == id_b and tokens_a != tokens_b:  # the shorter is a prefix of the longer
            return shared + min(tokens_a, tokens_b)
        if id_a != id_b:
            return shared + min(common_words(id_a, id_b, lexicon_size), tokens_a, tokens_b)
        shared += tokens_a
    return shared
