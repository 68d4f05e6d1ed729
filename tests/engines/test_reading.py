from __future__ import annotations

from typing import Any

import pytest

from harness.engines.base import Event, Timings, Usage
from harness.engines.reading import read_event


def delta(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


@pytest.mark.parametrize(
    "body",
    [
        delta(content="hi"),
        delta(role="assistant", content="hi"),
        delta(reasoning_content=None, content="hi"),
        {"choices": [{"index": 0, "text": "hi", "logprobs": None, "finish_reason": None}]},
    ],
)
def test_content_of_chats_and_completions_is_text_and_output(body: dict[str, Any]) -> None:
    assert read_event(body) == Event(text="hi", is_output=True)


@pytest.mark.parametrize(
    "body",
    [
        delta(reasoning="hm"),
        delta(reasoning_content="hm", content=None),
        delta(reasoning="hm", reasoning_content="hm"),
        delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": {"name": None, "arguments": '{"a"'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ""}}, {"index": 1, "function": {"name": "g"}}]),
    ],
)
def test_reasoning_and_tool_calls_are_output_but_no_text(body: dict[str, Any]) -> None:
    assert read_event(body) == Event(is_output=True)


@pytest.mark.parametrize(
    "body",
    [
        delta(role="assistant", content=""),
        delta(role="assistant", content=None),
        delta(role="assistant", content="", reasoning_content=None),
        delta(),
        delta(content=None, reasoning=None, reasoning_content=None, tool_calls=None),
        delta(content="", reasoning="", reasoning_content="", tool_calls=[]),
        delta(tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": None, "arguments": ""}}]),
        delta(tool_calls=[{"index": 0, "function": None}]),
        {**delta(role="assistant", content=""), "prompt_token_ids": [1, 2, 3]},
        {**delta(role="assistant", content=None), "prompt_progress": {"total": 9, "cache": 3, "processed": 3}},
        {"choices": []},
        {"choices": None},
        {},
    ],
)
def test_a_role_an_empty_piece_or_nothing_at_all_is_not_output(body: dict[str, Any]) -> None:
    assert read_event(body) == Event()


def test_token_ids_are_output_and_counted() -> None:
    body = {"choices": [{"delta": {"content": ""}, "token_ids": [5, 6], "finish_reason": None}]}
    assert read_event(body) == Event(is_output=True, tokens=2)
    assert read_event({"choices": [{"delta": {"content": "a"}, "token_ids": None}]}).tokens is None


def test_a_finish_chunk_says_why_and_may_carry_text() -> None:
    assert read_event({"choices": [{"delta": {}, "finish_reason": "length"}]}) == Event(finish_reason="length")
    body = {"choices": [{"delta": {"content": "end"}, "finish_reason": "stop"}]}
    assert read_event(body) == Event(text="end", is_output=True, finish_reason="stop")


def test_a_plain_chat_answer_is_one_event() -> None:
    body = {
        "object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        "metrics": None,
    }
    assert read_event(body) == Event(text="hi", is_output=True, finish_reason="stop", usage=Usage(9, 1, None))


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({}, None),
        ({"prompt_tokens_details": None}, None),
        ({"prompt_tokens_details": {}}, None),
        ({"prompt_tokens_details": {"cached_tokens": None}}, None),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0),
        ({"prompt_tokens_details": {"cached_tokens": 96, "created_cache_tokens": 0}}, 96),
    ],
)
def test_cached_tokens_have_three_states(details: dict[str, Any], cached: int | None) -> None:
    body = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 8, "total_tokens": 108, **details}}
    assert read_event(body).usage == Usage(100, 8, cached)


@pytest.mark.parametrize(
    ("tiers", "cached"),
    [
        ({"device": 2145, "host": 0}, 2145),
        ({"device": 64, "host": 32, "storage": 16, "storage_backend": "file"}, 112),
        ({"device": 0, "host": 0}, 0),
        ({}, None),
        (None, None),
    ],
)
def test_sglang_tells_cached_tokens_by_tier_to_those_who_ask(tiers: dict[str, Any] | None, cached: int | None) -> None:
    body = {"choices": [], "sglext": {"cached_tokens_details": tiers}}
    assert read_event(body).usage == (None if cached is None else Usage(None, None, cached))
    plain = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}, "sglext": body["sglext"]}
    assert read_event(plain).usage == Usage(9, 1, cached)


def test_null_usage_and_no_usage_are_the_same() -> None:
    assert read_event({**delta(content="a"), "usage": None}) == read_event(delta(content="a"))
    running = {**delta(content="a"), "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
    assert read_event(running) == Event(text="a", is_output=True, usage=Usage(9, 1, None))


TIMINGS = {"cache_n": 7, "prompt_n": 93, "prompt_ms": 41.5, "predicted_n": 8, "predicted_ms": 80.25}


def test_llama_cpp_timings_give_prefill_and_decode() -> None:
    assert read_event({"choices": [], "timings": TIMINGS}).timings == Timings(None, 41.5, 80.25)


def test_llama_cpp_timings_stand_in_for_a_missing_usage() -> None:
    assert read_event({"choices": [], "timings": TIMINGS}).usage == Usage(100, 8, 7)
    usage = {"prompt_tokens": 101, "completion_tokens": 9}
    assert read_event({"choices": [], "usage": usage, "timings": TIMINGS}).usage == Usage(101, 9, 7)


def test_timings_without_cache_n_do_not_tell_the_length_of_the_prompt() -> None:
    timings = {"prompt_n": 93, "prompt_ms": 41.5, "predicted_n": 8, "predicted_ms": 80.25}
    assert read_event({"choices": [], "timings": timings}).usage == Usage(None, 8, None)


def test_vllm_metrics_give_queue_prefill_and_decode() -> None:
    metrics = {"time_to_first_token_ms": 85.2, "generation_time_ms": 1240.5, "queue_time_ms": 12.3, "mean_itl_ms": 9.1}
    body = {"choices": [], "usage": {"prompt_tokens": 42, "completion_tokens": 128}, "metrics": metrics}
    assert read_event(body).timings == Timings(queue_ms=12.3, prefill_ms=85.2, decode_ms=1240.5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "no room", "type": "server_error", "code": 500}}, "no room"),
        ({"error": {"code": 503, "message": "no room", "type": "unavailable_error"}}, "no room"),
        ({"error": {"object": "error", "message": "no room", "param": None}}, "no room"),
        ({"object": "error", "message": "no room", "code": 400}, "no room"),
        ({"error": "no room"}, "no room"),
        ({"error": {"code": 500}}, "{'code': 500}"),
    ],
)
def test_errors_of_all_shapes_give_their_message(body: dict[str, Any], message: str) -> None:
    assert read_event(body) == Event(error=message)


def test_a_null_error_is_none() -> None:
    assert read_event({**delta(content="a"), "error": None}).error is None


def test_of_several_choices_the_first_counts() -> None:
    assert read_event({"choices": [{"text": "a"}, {"text": "b"}]}) == Event(text="a", is_output=True)
