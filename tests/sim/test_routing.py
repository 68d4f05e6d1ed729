"""Which replica gets a request."""

from __future__ import annotations

import json
from typing import Any

from harness.sim import routing
from harness.sim.routing import CHUNK, MOST_AHEAD, LongestPrefix, RoundRobin, policy, prompt_text

IDLE = [0, 0, 0]


def chat(*contents: str, **more: Any) -> bytes:
    roles = ("system", "user", "assistant", "user")
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]
    return json.dumps({**more, "messages": messages}).encode()


def words(letter: str, chunks: int) -> str:
    return letter * (CHUNK * chunks)


def test_round_robin_takes_turns_whatever_is_asked() -> None:
    turns = RoundRobin(3)
    assert [turns.choose(chat("same"), [9, 0, 0]) for _ in range(5)] == [0, 1, 2, 0, 1]


def test_a_prompt_goes_where_the_longest_prefix_of_it_went() -> None:
    prefix = LongestPrefix(3)
    loads = [0, 0, 0]
    first = prefix.choose(chat(words("a", 4), "question"), loads)
    second = prefix.choose(chat(words("b", 4), "question"), loads)
    assert first != second
    assert prefix.choose(chat(words("a", 4), "another"), loads) == first
    assert prefix.choose(chat(words("b", 3) + words("c", 9)), loads) == second
    # More of it in another place: b + c went to the second one, too, and is longer there than a alone.
    assert prefix.choose(chat(words("b", 3) + words("c", 5)), [0, 5, 5]) == second


def test_of_equally_good_replicas_the_least_loaded_is_taken_then_the_one_that_was_sent_least() -> None:
    prefix = LongestPrefix(3)
    assert prefix.choose(chat(words("a", 4)), [2, 1, 2]) == 1
    assert prefix.choose(chat(words("b", 4)), [0, 0, 1]) == 0
    assert prefix.choose(chat(words("c", 2)), IDLE) == 2
    assert prefix.choose(chat(words("d", 4)), IDLE) == 2


def test_a_replica_that_is_far_ahead_in_load_is_passed_over() -> None:
    prefix = LongestPrefix(2)
    assert prefix.choose(chat(words("a", 4)), [0, 1]) == 0
    assert prefix.choose(chat(words("a", 4)), [MOST_AHEAD, 0]) == 0
    assert prefix.choose(chat(words("a", 4)), [MOST_AHEAD + 1, 0]) == 1
    # From then on both have it.
    assert prefix.choose(chat(words("a", 4)), [1, 0]) == 1


def test_only_the_latest_prompts_are_remembered_and_their_beginnings_longest(monkeypatch: Any) -> None:
    monkeypatch.setattr(routing, "MOST_CHUNKS", 6)
    prefix = LongestPrefix(2)
    assert prefix.choose(chat(words("a", 4)), [0, 1]) == 0
    assert prefix.choose(chat(words("b", 4)), [0, 1]) == 0  # two chunks of a are left: its first ones
    assert prefix.choose(chat(words("a", 2)), [1, 0]) == 0
    assert prefix.choose(chat(words("c", 6)), [0, 1]) == 0
    assert prefix.choose(chat(words("a", 2)), [1, 0]) == 1


def test_prompts_are_read_in_each_of_their_shapes() -> None:
    assert prompt_text(chat("be brief", "why", model="m")) == "\0system\0be brief\0user\0why"
    assert prompt_text(b'{"prompt": "once upon"}') == "once upon"
    assert prompt_text(b'{"prompt": [1, 22, 3]}') == "1,22,3"
    parts = prompt_text(b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}')
    assert parts.startswith("\0user\0[")
    assert [prompt_text(body) for body in (b"{", b"[]", b"{}", b'{"messages": 5}')] == [""] * 4


def test_the_policy_is_chosen_by_name() -> None:
    assert isinstance(policy("round-robin", 2), RoundRobin)
    assert isinstance(policy("prefix", 2), LongestPrefix)
