"""What the llama.cpp adapter sends, timed as in a run, to llama.cpp's own server: token ids, slots, resets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.client.reply import Reply
from harness.client.timed import TimedClient
from harness.embedded.server import RunningServer
from harness.engines.detect import connect
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target

Start = Callable[..., RunningServer]

A = list(range(100, 160))
B = list(range(300, 360))
CHAT = [{"role": "user", "content": "# hello"}]


def engine_of(server: RunningServer) -> OpenAIEngine:
    return connect(Target(url=server.url))


def send(engine: OpenAIEngine, path: str, payload: Mapping[str, Any]) -> Reply:
    client = TimedClient(engine.target, engine.read_event)
    replies: list[Reply] = []
    client.post(path, payload, engine.request_headers, replies.append)
    client.close()
    assert (replies[0].status, replies[0].error) == ("ok", None)
    return replies[0]


def cached(engine: OpenAIEngine, prompt: Sequence[int], slot: int | None = None) -> int | None:
    return send(engine, "/completions", engine.ids_payload(prompt, 4, slot=slot)).cached_tokens


def test_a_prompt_of_token_ids_is_taken_as_it_is(llama_cpp_server: Start) -> None:
    engine = engine_of(llama_cpp_server(slots=1, context_tokens=512, cache_ram_mib=0))
    reply = send(engine, "/completions", engine.ids_payload(A, 8))
    assert (reply.prompt_tokens, reply.output_tokens, reply.finish_reason) == (60, 8, "length")
    assert reply.output_tokens_source == "usage"
    assert reply.cached_tokens == 0
    assert cached(engine, A) == 59
    assert cached(engine, [*A[:25], *B[:35]]) == 25


def test_a_request_is_served_by_the_slot_that_it_names(llama_cpp_server: Start) -> None:
    engine = engine_of(llama_cpp_server(slots=2, context_tokens=1024, cache_ram_mib=0))
    assert cached(engine, A, slot=0) == 0
    assert cached(engine, A, slot=1) == 0
    assert cached(engine, B, slot=1) == 0
    assert cached(engine, A, slot=0) == 59
    assert cached(engine, A, slot=1) == 0


def test_a_chat_is_pinned_as_well(llama_cpp_server: Start) -> None:
    engine = engine_of(llama_cpp_server(slots=2, context_tokens=1024, cache_ram_mib=0))
    hits = [
        send(engine, "/chat/completions", engine.chat_payload(CHAT, 4, slot=slot)).cached_tokens for slot in (1, 0, 1)
    ]
    assert hits == [0, 0, engine.count_chat(CHAT) - 1]


def test_a_reset_does_not_reach_what_was_moved_to_host_memory(llama_cpp_server: Start, tmp_path: Path) -> None:
    engine = engine_of(llama_cpp_server(slots=1, context_tokens=512, slot_save_path=tmp_path))
    assert (cached(engine, A), cached(engine, B)) == (0, 0)
    outcome = engine.reset_cache()
    assert not outcome.complete
    assert "host memory is still there" in outcome.message
    assert cached(engine, A) == 59


@pytest.mark.parametrize(("unified", "context_tokens"), [(True, 1024), (False, 512)])
def test_slots_that_share_one_buffer_each_offer_all_of_it(
    llama_cpp_server: Start, unified: bool, context_tokens: int
) -> None:
    identity = engine_of(llama_cpp_server(slots=2, context_tokens=1024, kv_unified=unified)).identify()
    assert (identity.slots, identity.context_tokens, identity.capacity_tokens) == (2, context_tokens, None)
    assert "--kv-unified" in identity.unknown["capacity_tokens"]
