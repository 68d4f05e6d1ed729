"""What the simulated vLLM does beyond the recorded exchanges."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harness.sim.clock import VirtualClock
from harness.sim.manners.vllm import Vllm
from harness.sim.options import SimOptions
from tests.sim.exchange import differences, recorded, recorded_body, unexplained
from tests.sim.manner import answer, event, events, page, run, stream
from tests.sim.metrics_pages import value_of
from tests.sim.recorded_run import CHAT, forced, streamed
from tests.sim.sized import chat, words
from tests.sim.test_vllm_exchanges import ALLOWED

LONG = chat(200, 180, words(1, 20))


def vllm(**more: Any) -> Vllm:
    settings = {"kv_tokens": 4096, "context_tokens": 2048, "page_tokens": 32, **more}
    return Vllm(SimOptions(manner="vllm", **settings), VirtualClock())


def test_a_reset_is_refused_while_a_request_runs() -> None:
    async def job() -> None:
        manner = vllm()
        pieces = (await stream(manner, CHAT, streamed(LONG, 1000))).pieces
        await anext(pieces)
        busy = await answer(manner, "/reset_prefix_cache", b"")
        assert json.loads(busy.body) == recorded_body("vllm/52-reset-while-busy.body.json")
        await pieces.aclose()
        assert json.loads((await answer(manner, "/reset_prefix_cache", b"")).body) == {"success": True}

    run(job)


def test_a_reset_empties_the_cache() -> None:
    async def job() -> list[int]:
        manner, cached = vllm(), []
        for _ in range(2):
            for _ in range(2):
                usage = json.loads((await answer(manner, CHAT, forced({"messages": LONG}))).body)["usage"]
                cached.append(usage["prompt_tokens_details"]["cached_tokens"])
            await answer(manner, "/reset_prefix_cache", b"")
        return cached

    assert run(job) == [0, 192, 0, 192]


def test_there_is_no_reset_without_development_mode() -> None:
    async def job() -> int:
        return (await answer(vllm(dev_mode=False), "/reset_prefix_cache", b"")).status

    assert run(job) == 404


def test_a_client_that_hangs_up_leaves_what_was_recorded_and_nothing_in_the_counts_of_requests() -> None:
    async def job() -> None:
        manner = vllm()
        pieces = (await stream(manner, CHAT, streamed(LONG, 1500))).pieces
        got = [event(await anext(pieces)) for _ in range(5)]
        text = await page(manner)
        assert value_of(text, "vllm:num_requests_running") == 1
        assert value_of(text, "vllm:kv_cache_usage_perc") == 7 * 32 / 4064  # 204 tokens in 7 of 127 blocks
        await pieces.aclose()
        text = await page(manner)
        assert value_of(text, "vllm:num_requests_running") == value_of(text, "vllm:kv_cache_usage_perc") == 0
        assert value_of(text, "vllm:generation_tokens_total") == 4
        assert value_of(text, "vllm:time_to_first_token_seconds_count") == 1
        assert value_of(text, "vllm:request_success_total") == 0
        assert value_of(text, "vllm:e2e_request_latency_seconds_count") == 0
        begins = recorded("vllm/30-chat-aborted-by-client").events[:5]
        assert unexplained(differences(begins, got, "body"), ALLOWED) == []

    run(job)


def test_requests_that_wait_are_told() -> None:
    async def job() -> None:
        manner = vllm(max_running=1)
        first, second = [(await stream(manner, CHAT, streamed(LONG, 1500))).pieces for _ in range(2)]
        await anext(first)
        waits = asyncio.ensure_future(anext(second))
        await asyncio.sleep(0)
        text = await page(manner)
        assert value_of(text, "vllm:num_requests_running") == 1
        assert value_of(text, "vllm:num_requests_waiting") == 1
        assert value_of(text, "vllm:num_requests_waiting_by_reason", reason="capacity") == 1
        assert value_of(text, "vllm:num_requests_waiting_by_reason", reason="deferred") == 0
        waits.cancel()
        await first.aclose()

    run(job)


def test_requests_that_lose_their_blocks_are_counted() -> None:
    """Two grow from 29 blocks to 32 each, and there are 63."""

    async def job() -> None:
        manner = vllm(kv_tokens=2048, context_tokens=2048)
        asked = [chat(900, 880, words(1, 20), system=first) for first in (0, 500)]
        await asyncio.gather(*(answer(manner, CHAT, forced({"messages": one}, 120)) for one in asked))
        text = await page(manner)
        assert value_of(text, "vllm:num_preemptions_total") == 1
        assert value_of(text, "vllm:request_num_preemptions_sum") == 1
        assert value_of(text, "vllm:prompt_tokens_total") == value_of(text, "vllm:prefix_cache_queries_total") == 1800
        assert value_of(text, "vllm:generation_tokens_total") == 240

    run(job)


def test_histograms_tell_the_simulated_times() -> None:
    async def job() -> None:
        manner = vllm()
        await events(manner, CHAT, streamed(LONG, 11))
        text = await page(manner)
        ttft, itl, e2e = (
            value_of(text, f"vllm:{name}_seconds_sum")
            for name in ("time_to_first_token", "inter_token_latency", "e2e_request_latency")
        )
        assert ttft is not None
        assert itl is not None
        assert e2e == pytest.approx(ttft + itl) == pytest.approx(manner.engine.driver.now_s())
        assert value_of(text, "vllm:inter_token_latency_seconds_count") == 10
        assert value_of(text, "vllm:request_time_per_output_token_seconds_sum") == pytest.approx(itl / 10)

    run(job)


def test_the_page_says_how_far_the_simulator_is_behind() -> None:
    async def job() -> None:
        text = await page(vllm())
        assert value_of(text, "kvswarm_sim_lag_seconds") == value_of(text, "kvswarm_sim_greatest_lag_seconds") == 0

    run(job)


def test_health_is_a_status_without_a_body() -> None:
    async def job() -> None:
        said = await answer(vllm(), "/health")
        assert (said.status, said.body, said.content_type) == (200, b"", None)

    run(job)


def test_a_client_that_reads_late_gets_what_there_is_then_and_one_end() -> None:
    async def job() -> None:
        manner = vllm()
        pieces = (await stream(manner, CHAT, streamed(LONG, 6))).pieces
        assert "role" in event(await anext(pieces))["choices"][0]["delta"]
        while manner.engine.scheduler.running:
            await asyncio.sleep(0)
        first, rest, usage, done = [event(piece) async for piece in pieces]
        texts = [chunk["choices"][0]["delta"]["content"] for chunk in (first, rest)]
        assert [len(text.split()) for text in texts] == [1, 5]
        assert [chunk["choices"][0]["finish_reason"] for chunk in (first, rest)] == [None, "length"]
        assert usage["usage"]["completion_tokens"] == 6
        assert done == "[DONE]"

    run(job)
