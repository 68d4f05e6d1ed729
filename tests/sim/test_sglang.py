"""What the simulated SGLang does beyond the recorded exchanges."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harness.sim.clock import VirtualClock
from harness.sim.manners.sglang import Sglang
from harness.sim.options import SimOptions
from harness.sim.web import Answer
from tests.contract.subject import token_ids
from tests.sim.exchange import differences, recorded, recorded_body, unexplained
from tests.sim.manner import answer, event, events, page, run, stream
from tests.sim.metrics_pages import value_of
from tests.sim.recorded_run import CHAT, COMPLETION, forced, streamed
from tests.sim.sized import chat, words
from tests.sim.test_sglang_exchanges import ALLOWED

LONG = chat(200, 180, words(1, 20))


def sglang(**more: Any) -> Sglang:
    settings = {"kv_tokens": 4096, "context_tokens": 2048, **more}
    return Sglang(SimOptions(manner="sglang", **settings), VirtualClock())


async def usage(manner: Sglang, messages: Any = LONG, tokens: int = 8, **more: Any) -> dict[str, Any]:
    body = await answer(manner, CHAT, forced({"messages": messages}, tokens, **more))
    told: dict[str, Any] = json.loads(body.body)["usage"]
    return told


def test_a_flush_is_refused_while_a_request_runs() -> None:
    async def job() -> Answer:
        manner = sglang()
        pieces = (await stream(manner, CHAT, streamed(LONG, 1000))).pieces
        await anext(pieces)
        busy = await answer(manner, "/flush_cache", b"", query={"timeout": "0.02"})
        await pieces.aclose()
        return busy

    busy = run(job)
    assert (busy.status, busy.content_type) == (400, None)
    assert busy.body.decode() == recorded_body("sglang/52-flush-while-busy.body.txt")


def test_a_flush_waits_as_long_as_it_is_told_and_empties_the_cache() -> None:
    async def job() -> None:
        manner = sglang()
        pieces = (await stream(manner, CHAT, streamed(LONG, 40))).pieces
        flushing = asyncio.create_task(answer(manner, "/flush_cache", query={"timeout": "60"}))
        assert len([piece async for piece in pieces]) == 44
        flushed = await flushing
        assert flushed.status == 200
        assert flushed.body.decode() == recorded_body("sglang/01-reset.body.txt")
        assert (await usage(manner))["prompt_tokens_details"]["cached_tokens"] == 0

    run(job)


def test_a_flush_wants_a_number_of_seconds() -> None:
    async def job() -> int:
        return (await answer(sglang(), "/flush_cache", query={"timeout": "long"})).status

    assert run(job) == 400


def test_nothing_is_sent_before_the_first_token() -> None:
    async def job() -> None:
        manner = sglang()
        pieces = (await stream(manner, CHAT, streamed(LONG, 100))).pieces
        assert value_of(await page(manner), "sglang:time_to_first_token_seconds_count") == 1
        assert event(await anext(pieces))["choices"][0]["delta"]["role"] == "assistant"
        await pieces.aclose()

    run(job)


def test_a_client_that_hangs_up_is_counted_and_leaves_what_was_recorded() -> None:
    async def job() -> None:
        manner = sglang()
        assert value_of(await page(manner), "sglang:num_aborted_requests_total") is None
        pieces = (await stream(manner, CHAT, streamed(LONG, 1500))).pieces
        got = [event(await anext(pieces)) for _ in range(5)]
        await pieces.aclose()
        text = await page(manner)
        assert value_of(text, "sglang:num_aborted_requests_total") == 1
        assert value_of(text, "sglang:num_requests_total", is_streaming="true") == 1
        assert value_of(text, "sglang:generation_tokens_total") == 4
        begins = recorded("sglang/30-chat-aborted-by-client").events[:5]
        assert unexplained(differences(begins, got, "body"), ALLOWED) == []
        assert (await usage(manner))["prompt_tokens_details"]["cached_tokens"] == 199

    run(job)


def test_a_client_that_hangs_up_before_the_first_token_ends_its_request() -> None:
    async def job() -> None:
        manner = sglang()
        waiting = asyncio.create_task(stream(manner, CHAT, streamed(LONG, 1500)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert list(manner.engine.scheduler.running) == list(manner.engine.scheduler.waiting) == []
        assert value_of(await page(manner), "sglang:http_requests_active", endpoint=CHAT) == 0

    run(job)


def test_a_salt_and_a_key_are_two_ways_to_keep_apart() -> None:
    async def job() -> list[int]:
        manner, cached = sglang(), []
        kinds: tuple[dict[str, Any], ...] = (
            {"cache_salt": "x"},
            {"extra_key": "x"},
            {"cache_salt": "x", "extra_key": "x"},
            {"cache_salt": "x"},
        )
        for more in kinds:
            cached.append((await usage(manner, **more))["prompt_tokens_details"]["cached_tokens"])
        return cached

    assert run(job) == [0, 0, 0, 199]


def test_no_tokens_may_be_asked_for() -> None:
    async def job() -> None:
        manner = sglang()
        body = json.loads((await answer(manner, CHAT, forced({"messages": LONG}, 0))).body)
        assert body["choices"][0]["message"]["content"] == ""
        assert body["usage"]["completion_tokens"] == 0
        assert value_of(await page(manner), "sglang:generation_tokens_total") == 0
        assert (await usage(manner))["prompt_tokens_details"]["cached_tokens"] == 199

    run(job)


def test_several_prompts_or_answers_in_one_request_are_not_simulated() -> None:
    async def job() -> list[int]:
        manner = sglang()
        said = [
            await answer(manner, COMPLETION, forced({"prompt": ["a", "b"]})),
            await answer(manner, CHAT, forced({"messages": LONG}, n=2)),
        ]
        return [one.status for one in said]

    assert run(job) == [400, 400]


def test_a_prompt_and_an_answer_must_fit_together() -> None:
    async def job() -> str:
        refused = await answer(sglang(), CHAT, streamed(LONG, 1900))
        assert refused.status == 400
        return str(json.loads(refused.body)["message"])

    assert "You requested a total of 2100 tokens: 200 tokens from the input messages and 1900 tokens" in run(job)


def test_a_prompt_that_the_pool_has_no_room_for_is_refused_with_a_status() -> None:
    async def job() -> None:
        manner = sglang(kv_tokens=128)
        said = [await answer(manner, CHAT, body) for body in (streamed(LONG), forced({"messages": LONG}))]
        assert [one.status for one in said] == [400, 400]
        assert value_of(await page(manner), "sglang:http_requests_active", endpoint=CHAT) == 0

    run(job)


def test_tokens_of_texts_are_told_under_both_paths() -> None:
    async def job() -> None:
        manner = sglang()
        for path in ("/tokenize", "/v1/tokenize"):
            told = json.loads((await answer(manner, path, {"prompt": words(3)})).body)
            assert told["tokens"] == token_ids(words(3))
        ids = token_ids("<|im_start|> the")
        for body, text in (
            ({"tokens": ids}, " the"),
            ({"tokens": ids, "skip_special_tokens": False}, "<|im_start|> the"),
        ):
            assert json.loads((await answer(manner, "/detokenize", body)).body) == {"text": text}
        assert (await answer(manner, "/detokenize", {"tokens": [5000]})).status == 400

    run(job)


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/models", 401), ("/server_info", 401), ("/health", 200), ("/metrics", 200)]
)
def test_a_key_guards_all_but_health_and_metrics(path: str, status: int) -> None:
    async def job() -> tuple[int, int]:
        manner = sglang(api_key="secret")
        with_key = await answer(manner, path, headers={"authorization": "Bearer secret"})
        return (await answer(manner, path)).status, with_key.status

    assert run(job) == (status, 200)


def test_usage_can_come_with_each_token_of_a_completion() -> None:
    async def job() -> list[int]:
        body = forced({"prompt": words(40)}, 3, stream=True, stream_options={"continuous_usage_stats": True})
        *chunks, done = await events(sglang(), COMPLETION, body)
        assert done == "[DONE]"
        return [chunk["usage"]["completion_tokens"] for chunk in chunks]

    assert run(job) == [1, 2, 3]


def test_health_is_a_status_without_a_body() -> None:
    async def job() -> None:
        said = await answer(sglang(), "/health")
        assert (said.status, said.body, said.content_type) == (200, b"", None)

    run(job)


def test_a_client_that_reads_late_gets_what_there_is_then_and_one_end() -> None:
    async def job() -> None:
        manner = sglang()
        body = streamed(LONG, 6) | {"stream_options": {"continuous_usage_stats": True}}
        pieces = (await stream(manner, CHAT, body)).pieces
        await anext(pieces)
        while manner.engine.scheduler.running:
            await asyncio.sleep(0)
        first, rest, end, done = [event(piece) async for piece in pieces]
        assert [chunk["usage"]["completion_tokens"] for chunk in (first, rest)] == [1, 6]
        reasons = [chunk["choices"][0]["finish_reason"] for chunk in (first, rest, end)]
        assert (reasons, done) == ([None, None, "length"], "[DONE]")

    run(job)
