"""What real servers sent gives the right reply, however the network cuts it."""

from __future__ import annotations

import json
from dataclasses import fields
from itertools import accumulate, pairwise
from typing import Any

import pytest

from harness.client.reply import Reply
from tests.client.wire import MS, RECORDINGS, recording, reply_to
from tests.recordings.plainly import TABLE, short
from tests.recordings.plainly import table as plain_table

TIMES = {"t_first", "t_last", "t_end", "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "coalesced"} | {
    "stamp_error_ms",
    "last_stamp_error_ms",
}


def all_but_times(reply: Reply) -> dict[str, Any]:
    return {field.name: getattr(reply, field.name) for field in fields(reply) if field.name not in TIMES}


ANSWERS: dict[str, dict[str, Any]] = json.loads(TABLE.read_text())
EXHAUSTIVE_BYTES = 2_500
CUTS = 300
"""A longer recording is cut at about so many places, spread over it, the first and the last byte among them."""


def row(reply: Reply) -> dict[str, Any]:
    """A reply as a line of the table has it: what is not known is left out, but for the reason to finish."""
    if reply.status == "http_error":
        return {"http": reply.http_status, "error": reply.error}
    counts = {
        "prompt": reply.prompt_tokens,
        "output": reply.output_tokens,
        "cached": reply.cached_tokens,
        "prefill_ms": reply.prefill_ms,
        "decode_ms": reply.decode_ms,
        "output_by": None if reply.output_tokens_source == "usage" else reply.output_tokens_source,
    }
    told = {"status": reply.status, "chunks": reply.chunks, "finish": reply.finish_reason, "text": short(reply.text)}
    return told | {name: count for name, count in counts.items() if count is not None}


def test_the_table_is_what_a_plain_reading_of_the_recordings_gives() -> None:
    assert plain_table() == ANSWERS


@pytest.mark.parametrize("name", ANSWERS)
def test_a_recorded_answer_is_read_exactly(name: str) -> None:
    assert row(reply_to([recording(f"{name}.response.http")])) == ANSWERS[name]


@pytest.mark.parametrize("name", [name for name in ANSWERS if b"data: [DONE]" in recording(f"{name}.response.http")])
def test_a_recorded_stream_without_its_end_is_truncated_and_loses_nothing_else(name: str) -> None:
    wire, _, _ = recording(f"{name}.response.http").partition(b"data: [DONE]")
    assert row(reply_to([wire])) == {**ANSWERS[name], "status": "truncated"}


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


def cuts(length: int) -> list[int]:
    if length <= EXHAUSTIVE_BYTES:
        return list(range(1, length))
    step = (length - 1) // CUTS + 1
    return [*range(1, length, step), length - 1]


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
    for cut in cuts(len(wire)):
        reply = reply_to([wire[:cut], wire[cut:]], (early, late))
        assert all_but_times(reply) == whole
        arrivals = [early if at < cut else late for at in outputs]
        assert (reply.t_first, reply.t_last) == ((arrivals[0], arrivals[-1]) if arrivals else (None, None))
        assert reply.itl_ms == tuple((after - before) / MS for before, after in pairwise(arrivals))
