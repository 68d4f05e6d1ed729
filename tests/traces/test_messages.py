from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cache.reuse_distance import reuse_distances
from harness.errors import InputError
from harness.traces.reading import read_trace
from harness.traces.request import Trace
from tests.traces.written import chat, lines

SYSTEM, QUESTION, ANSWER = ("system", "Be brief. " * 12), ("user", "Why is the sky blue?"), ("assistant", "Scattering.")


def read(tmp_path: Path, *rows: dict[str, Any], block: int = 4, tokenizer: Path | None = None) -> Trace:
    return read_trace(lines(tmp_path / "t.jsonl", list(rows)), messages_block_tokens=block, tokenizer=tokenizer)


def hit_tokens(trace: Trace, block: int = 4) -> float:
    return reuse_distances([request.prompt for request in trace.requests], block).hit_tokens()


def test_a_length_is_estimated_by_the_rule_that_is_stated(tmp_path: Path) -> None:
    trace = read(tmp_path, chat(("user", "123456789"), ("assistant", "é")))
    # 3 before, ceil(9 / 4), 2 after; 3 before, 2 bytes, 2 after; 3 before the answer
    assert trace.requests[0].prompt_tokens == 3 + 3 + 2 + 3 + 1 + 2 + 3
    assert "estimated" in trace.notes[0]


def test_a_conversation_begins_with_what_it_was_before(tmp_path: Path) -> None:
    trace = read(tmp_path, chat(SYSTEM, QUESTION), chat(SYSTEM, QUESTION, ANSWER, ("user", "More.")), block=1)
    # All of the first prompt comes again: the header of its answer is that of the assistant's message.
    assert hit_tokens(trace, 1) == trace.requests[0].prompt_tokens == 3 + 30 + 2 + 3 + 5 + 2 + 3


def test_text_is_shared_up_to_the_first_block_that_differs(tmp_path: Path) -> None:
    trace = read(tmp_path, chat(("user", "x" * 400)), chat(("user", "x" * 390 + "y" * 10)))
    # 3 + 97 tokens are equal, 25 blocks of 4.
    assert hit_tokens(trace) == 100


@pytest.mark.parametrize(
    "other",
    [chat(("system", QUESTION[1])), chat(QUESTION, model="b"), chat(QUESTION, tools=[{"type": "function"}])],
    ids=["role", "model", "tools"],
)
def test_role_model_and_tools_are_part_of_the_prompt(tmp_path: Path, other: dict[str, Any]) -> None:
    same = read(tmp_path, chat(QUESTION, model="a"), chat(QUESTION, model="a"))
    assert hit_tokens(same) == 12
    assert hit_tokens(read(tmp_path, chat(QUESTION, model="a"), {"model": "a", **other})) == 0


def test_the_same_text_has_the_same_ids_in_every_file(tmp_path: Path) -> None:
    before = read(tmp_path, chat(SYSTEM, QUESTION)).requests[0].prompt
    assert read(tmp_path, chat(ANSWER), chat(SYSTEM, QUESTION)).requests[1].prompt == before


def test_content_may_be_parts_and_calls(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "12345"}, {"type": "text", "text": "678"}]
    calls = [{"id": "c"}]
    rows: list[dict[str, Any]] = [
        {"messages": [{"role": "user", "content": parts}]},
        {"messages": [{"role": "assistant", "content": None, "tool_calls": calls}]},
    ]
    requests = read(tmp_path, *rows).requests
    assert [request.prompt_tokens for request in requests] == [3 + 2 + 2 + 3, 3 + 3 + 2 + 3]  # [{"id":"c"}]


def test_times_count_from_the_first_and_lengths_of_answers_may_be_known(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        chat(QUESTION, timestamp=5_000, max_tokens=20, session_id="a"),
        chat(QUESTION, timestamp=6_500, max_tokens=20, output_length=7),
        chat(QUESTION, timestamp=6_500, temperature=0.5, stream=True),
    )
    shown = [(request.time_s, request.output_tokens, request.session) for request in trace.requests]
    assert shown == [(0, 20, "a"), (1.5, 7, None), (1.5, None, None)]


def test_a_tokeniser_counts_where_one_is_given(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    trace = read(tmp_path, chat(("user", "a b a b")), chat(("user", "a b a a")), block=1, tokenizer=file)
    assert [request.prompt_tokens for request in trace.requests] == [3 + 4 + 2 + 3] * 2
    assert hit_tokens(trace, 1) == 3 + 3
    assert "tokenizer.json" in trace.notes[0]


@pytest.mark.parametrize(("content", "words"), [(None, "cannot be read"), ("{}", "not a tokenizer.json")])
def test_a_tokeniser_that_cannot_be_used(tmp_path: Path, content: str | None, words: str) -> None:
    file = tmp_path / "tokenizer.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path, chat(QUESTION), tokenizer=file)
    assert str(file) in str(caught.value)
