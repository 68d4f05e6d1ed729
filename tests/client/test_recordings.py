"""What real servers sent gives the right reply, however the network cuts it."""

from __future__ import annotations

from dataclasses import fields
from itertools import accumulate, pairwise
from typing import Any

import pytest

from harness.client.reply import Reply
from tests.client.wire import MS, RECORDINGS, recording, reply_to

TIMES = {"t_first", "t_last", "t_end", "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "coalesced"} | {
    "stamp_error_ms",
    "last_stamp_error_ms",
}


def all_but_times(reply: Reply) -> dict[str, Any]:
    return {field.name: getattr(reply, field.name) for field in fields(reply) if field.name not in TIMES}


# recording: (output chunks, finish reason, prompt tokens, output tokens, cached tokens), read off the recorded bodies
STREAMS = {
    "vllm/03-chat-cold": (8, "length", 2060, 8, 0),
    "vllm/04-chat-warm": (8, "length", 2065, 8, 2016),
    "vllm/10-completions-stream": (8, "length", 1370, 8, 0),
    "vllm/11-chat-eos-allowed": (0, "stop", 37, 1, 32),
    "vllm/11-chat-max-1": (1, "length", 37, 1, 32),
    "vllm/11-chat-return-token-ids": (8, "length", 37, 8, 32),
    "vllm/11-chat-stream-continuous-usage": (8, "length", 37, 8, 32),
    "vllm/11-chat-stream-no-usage": (8, "length", None, 8, None),
    "vllm/60-caching-off-chat-cold": (4, "length", 2256, 4, None),
    "sglang/03-chat-cold": (8, "length", 2060, 8, 0),
    "sglang/04-chat-warm": (8, "length", 2065, 8, 2045),
    "sglang/10-completions-stream": (8, "length", 1370, 8, 0),
    "sglang/11-chat-eos-allowed": (0, "stop", 37, 1, 36),
    "sglang/11-chat-stream-no-usage": (8, "length", None, 8, None),
    "sglang/60-caching-off-chat-cold": (4, "length", 2256, 4, None),
    "llama-server/chat_stream_cold": (16, "length", 1534, 16, 7),
    "llama-server/chat_stream_warm": (16, "length", 1529, 16, 1515),
    "llama-server/chat_stream_no_usage_option": (4, "length", 1527, 4, 1517),
    "llama-server/chat_stream_return_progress": (4, "length", 2526, 4, 7),
    "llama-server/chat_stream_timings_per_token": (4, "length", 1527, 4, 1526),
    "llama-server/v1_completions_stream": (8, "length", 7, 8, 6),
    "xllamacpp/chat_stream_cold": (16, "length", 1534, 16, 7),
    "xllamacpp/v1_completions_stream": (8, "length", 7, 8, 6),
    "mlx-lm/chat_stream_cold": (16, "length", 1534, 16, 7),
    "mlx-lm/chat_stream_long_prompt_keepalives": (4, "length", 5028, 4, 7),
    "mlx-lm/chat_stream_no_stream_options": (4, "length", None, 4, None),
    "mlx-lm/v1_completions_stream": (8, "length", 7, 8, 0),
}

PLAIN = {
    "vllm/10-completions-plain": ("length", 1370, 8, 1344),
    "vllm/11-chat-plain": ("length", 37, 8, 0),
    "vllm/60-caching-off-chat-plain": ("length", 2258, 4, None),
    "sglang/10-completions-plain": ("length", 1370, 8, 1369),
    "sglang/60-caching-off-chat-plain": ("length", 2258, 4, None),
    "llama-server/chat_json_warm": ("length", 1530, 16, 7),
    "llama-server/chat_json_stop_string": ("stop", 1527, 2, 1517),
    "mlx-lm/chat_json_warm": ("length", 1530, 16, 1519),
}

ERRORS = {
    "vllm/20-error-max-tokens-zero": (400, "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)"),
    "vllm/20-error-unknown-model": (404, "The model `nope` does not exist. Valid aliases: tiny."),
    "vllm/20-error-404": (404, '{"detail":"Not Found"}'),
    "sglang/20-error-bad-temperature": (400, "temperature must be a non-negative finite number, got -1.0."),
    "sglang/20-error-too-long-chat": (
        400,
        "The input (8904 tokens) is longer than the model's context length (4096 tokens).",
    ),
    "llama-server/error_bad_type": (400, "Expected 'messages' to be an array"),
    "llama-server/error_unknown_path": (404, "File Not Found"),
    "xllamacpp/error_too_long_stream": (
        400,
        "request (9016 tokens) exceeds the available context size (8192 tokens), try increasing it",
    ),
    "mlx-lm/error_bad_type": (400, "max_tokens must be of type int"),
    "mlx-lm/error_unknown_path": (404, "Not Found"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_recorded_stream_is_read_in_full(name: str) -> None:
    reply = reply_to([recording(f"{name}.response.http")])
    assert (reply.status, reply.http_status, reply.error) == ("ok", 200, None)
    counts = (reply.chunks, reply.finish_reason, reply.prompt_tokens, reply.output_tokens, reply.cached_tokens)
    assert counts == STREAMS[name]


@pytest.mark.parametrize("name", PLAIN)
def test_a_recorded_plain_answer_is_read_in_full(name: str) -> None:
    reply = reply_to([recording(f"{name}.response.http")])
    assert (reply.status, reply.chunks) == ("ok", 1)
    assert (reply.finish_reason, reply.prompt_tokens, reply.output_tokens, reply.cached_tokens) == PLAIN[name]


@pytest.mark.parametrize("name", ERRORS)
def test_a_recorded_error_is_told_in_the_engines_words(name: str) -> None:
    reply = reply_to([recording(f"{name}.response.http")])
    assert (reply.status, (reply.http_status, reply.error)) == ("http_error", ERRORS[name])


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_a_recorded_stream_that_broke_off_is_truncated_and_keeps_its_tokens(engine: str) -> None:
    reply = reply_to([recording(f"{engine}/30-chat-aborted-by-client.response.http")])
    assert (reply.status, reply.chunks, reply.text) == ("truncated", 4, "mekimo topabesi" * 2)


@pytest.mark.parametrize(
    ("name", "first_output"),
    [
        ("vllm/03-chat-cold", b'"delta":{"content":"mekimo"}'),
        ("sglang/03-chat-cold", b'"content":"mekimo"}'),
        ("llama-server/chat_stream_return_progress", b'"delta":{"content":" most"}'),
        ("mlx-lm/chat_stream_long_prompt_keepalives", b'"content": "cost"}'),
        ("llama-server/v1_completions_stream", b'"text":" open"'),
    ],
)
def test_the_first_token_arrives_with_the_end_of_its_event(name: str, first_output: bytes) -> None:
    wire = recording(f"{name}.response.http")
    last_byte = wire.index(b"\n\n", wire.index(first_output)) + 1
    reply = reply_to([wire[i : i + 1] for i in range(len(wire))], range(len(wire)))
    assert reply.t_first == last_byte


@pytest.mark.parametrize("name", RECORDINGS)
def test_no_cut_changes_anything_but_the_times_and_those_rightly(name: str) -> None:
    wire = recording(name)
    whole = all_but_times(reply_to([wire]))
    # Byte by byte, with stamps that count the bytes, says which byte completes what.
    by_byte = reply_to([wire[i : i + 1] for i in range(len(wire))], range(len(wire)))
    assert all_but_times(by_byte) == whole
    outputs = []
    if by_byte.t_first is not None and by_byte.itl_ms is not None:
        outputs = [round(at) for at in accumulate((gap * MS for gap in by_byte.itl_ms), initial=by_byte.t_first)]
    early, late = 5 * MS, 9 * MS
    for cut in range(1, len(wire)):
        reply = reply_to([wire[:cut], wire[cut:]], (early, late))
        assert all_but_times(reply) == whole
        arrivals = [early if at < cut else late for at in outputs]
        assert (reply.t_first, reply.t_last) == ((arrivals[0], arrivals[-1]) if arrivals else (None, None))
        assert reply.itl_ms == tuple((after - before) / MS for before, after in pairwise(arrivals))
