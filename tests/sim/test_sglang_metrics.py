"""When the simulated SGLang's metrics are there, and how old they are."""

from __future__ import annotations

import asyncio

from harness.sim.manners.sglang import Sglang
from harness.sim.manners.sglang_gauges import IDLE_S
from tests.sim.manner import page, run, stream
from tests.sim.metrics_pages import value_of
from tests.sim.recorded_run import CHAT, streamed
from tests.sim.sized import chat, words
from tests.sim.test_sglang import LONG, sglang, usage


def test_series_are_there_from_their_first_event_on() -> None:
    names = ("prompt_tokens", "generation_tokens", "cached_tokens", "evicted_tokens", "num_retracted_requests")

    async def counted(manner: Sglang) -> list[float | None]:
        text = await page(manner)
        return [value_of(text, f"sglang:{name}_total") for name in names]

    async def job() -> None:
        manner = sglang(kv_tokens=1024)
        assert await counted(manner) == [None] * 5
        await usage(manner, tokens=8)
        assert await counted(manner) == [200, 8, None, None, None]
        await usage(manner, tokens=8)
        assert await counted(manner) == [400, 16, 199, None, None]
        await usage(manner, chat(1000, 980, words(1, 20), system=500), tokens=8)
        text = await page(manner)
        assert value_of(text, "sglang:evicted_tokens_total") == manner.engine.scheduler.evicted_tokens > 0

    run(job)


def test_gauges_are_as_old_as_the_last_prefill() -> None:
    """They show neither that it is busy nor that it is not; half a minute later they do."""

    async def job() -> None:
        manner = sglang()
        pieces = (await stream(manner, CHAT, streamed(LONG, 10))).pieces
        await anext(pieces)
        busy = await page(manner)
        assert value_of(busy, "sglang:num_running_reqs") == 0
        assert value_of(busy, "sglang:num_used_tokens") == 200
        assert value_of(busy, "sglang:token_usage") == 0.05
        assert [piece async for piece in pieces]
        idle = await page(manner)
        assert value_of(idle, "sglang:num_used_tokens") == 200
        await asyncio.sleep(0.001)
        manner.engine.driver.clock.wall_s(manner.engine.driver.now_s() + IDLE_S)
        refreshed = await page(manner)
        assert value_of(refreshed, "sglang:num_used_tokens") == 0
        assert value_of(refreshed, "sglang:kv_evictable_tokens") == 209
        assert value_of(refreshed, "sglang:kv_available_tokens") == 4096 - 209

    run(job)


def test_gauges_are_new_at_each_fortieth_step_of_decoding() -> None:
    async def job() -> None:
        manner = sglang()
        pieces = (await stream(manner, CHAT, streamed(LONG, 100))).pieces
        for _ in range(45):
            await anext(pieces)
        text = await page(manner)
        assert value_of(text, "sglang:num_running_reqs") == 1
        assert value_of(text, "sglang:decode_sum_seq_lens") == 240
        assert (value_of(text, "sglang:gen_throughput") or 0) > 0
        await pieces.aclose()

    run(job)


def test_the_rate_of_hits_is_that_of_the_latest_prefill() -> None:
    async def job() -> list[float | None]:
        manner, rates = sglang(), []
        for messages in (LONG, LONG, chat(300, 280, words(1, 20), system=500)):
            await usage(manner, messages)
            rates.append(value_of(await page(manner), "sglang:cache_hit_rate"))
        return rates

    assert run(job) == [0, 199 / 200, 7 / 300]
