"""What a simulated llama.cpp server does beyond single exchanges, without HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from harness.sim.clock import VirtualClock
from harness.sim.manners.llama_cpp import LlamaCpp
from harness.sim.options import SimOptions
from harness.sim.web import Streamed
from tests.sim.exchange import Response, differences, recorded_body, unexplained
from tests.sim.llama_cpp_allowed import RECORDED
from tests.sim.manner import answer, page, run, stream
from tests.sim.sized import lone_question, words

CHATS = "/v1/chat/completions"
UNHURRIED = 0.1
"""A time scale at which a test looks at a step while it runs."""


def engine(**options: Any) -> LlamaCpp:
    """On virtual time: nothing waits for a clock."""
    return LlamaCpp(started_with(**options), VirtualClock())


def started_with(**options: Any) -> SimOptions:
    return SimOptions(manner="llama-cpp", **{"kv_tokens": 8192, "slots": 1, **options})


def asking(prompt_tokens: int, output_tokens: int, **more: Any) -> dict[str, Any]:
    return {"messages": lone_question(prompt_tokens), "max_tokens": output_tokens, "temperature": 0, **more}


async def read(streamed: Streamed) -> list[Any]:
    """Its events."""
    return Response(200, {}, b"".join([piece async for piece in streamed.pieces])).events


async def body(server: LlamaCpp, path: str, sent: Any = None, **more: Any) -> Any:
    """What a plain answer holds."""
    return json.loads((await answer(server, path, sent, **more)).body)


async def until(happens: Callable[[], Awaitable[bool]]) -> None:
    while not await happens():
        await asyncio.sleep(0.001)


async def values(server: LlamaCpp) -> dict[str, float]:
    lines = [line for line in (await page(server)).splitlines() if not line.startswith("#")]
    return {name.partition(":")[2]: float(value) for name, value in (line.split() for line in lines)}


@pytest.mark.parametrize("build", ["llama-server", "xllamacpp"])
def test_a_busy_slot_looks_as_was_recorded(build: str) -> None:
    async def test() -> None:
        server = LlamaCpp(started_with(time_scale=UNHURRIED))
        streamed = await stream(server, CHATS, asking(4017, 64, stream=True))
        found = differences(recorded_body(f"{build}/slots_busy.body.json"), await body(server, "/slots"), "body")
        assert unexplained(found, RECORDED) == []
        await streamed.pieces.aclose()

    run(test)


def test_a_slot_tells_what_was_reused_while_it_answers() -> None:
    async def test() -> None:
        server = engine()
        await answer(server, CHATS, asking(100, 2))
        streamed = await stream(server, CHATS, asking(120, 500, stream=True))
        await anext(streamed.pieces)
        [slot] = await body(server, "/slots")
        said = slot["next_token"][0]["n_decoded"]
        assert said >= 1
        assert slot["next_token"][0] == {
            "has_next_token": True, "has_new_line": False, "n_remain": 500 - said, "n_decoded": said
        }  # fmt: skip
        assert (slot["n_prompt_tokens_cache"], slot["n_prompt_tokens_processed"]) == (92, 28)
        assert slot["n_prompt_tokens"] == 120 + said
        await streamed.pieces.aclose()

    run(test)


def test_a_client_that_hangs_up_leaves_its_slot_with_what_was_computed() -> None:
    async def test() -> None:
        server = engine()
        streamed = await stream(server, CHATS, asking(100, 500, stream=True))
        await anext(streamed.pieces)
        await streamed.pieces.aclose()
        assert (await values(server))["requests_processing"] == 0
        [slot] = await body(server, "/slots")
        assert not slot["is_processing"]
        assert 100 <= slot["n_prompt_tokens"] < 200
        again = await body(server, CHATS, asking(100, 1))
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 99

    run(test)


def test_requests_wait_for_a_slot_and_an_erase_waits_too(tmp_path: Path) -> None:
    async def test() -> None:
        server = LlamaCpp(started_with(time_scale=20.0, slot_save_path=str(tmp_path)))
        first = await stream(server, CHATS, asking(100, 40, stream=True))
        waiting = asyncio.create_task(answer(server, CHATS, asking(50, 3)))
        await until(lambda: _has(server, "requests_deferred", 1))
        erasing = asyncio.create_task(body(server, "/slots/0", {}, query={"action": "erase"}))
        await asyncio.sleep(0)
        assert not erasing.done()
        assert len(await read(first)) == 43
        assert (await waiting).status == 200
        assert (await erasing)["n_erased"] == 50 + 3 - 1
        assert (await values(server))["requests_deferred"] == 0

    run(test)


async def _has(server: LlamaCpp, name: str, value: float) -> bool:
    return (await values(server))[name] == value


@pytest.mark.parametrize("streams", [False, True])
def test_a_prompt_that_is_too_long_is_refused_when_it_gets_a_slot(streams: bool) -> None:
    async def test() -> None:
        server = LlamaCpp(started_with(time_scale=20.0, kv_tokens=1024))
        first = await stream(server, CHATS, asking(100, 40, stream=True))
        refused = asyncio.create_task(answer(server, CHATS, asking(1024, 3, stream=streams)))
        await asyncio.sleep(0.001)
        assert not refused.done()
        await read(first)
        assert (await refused).status == 400
        assert b"request (1024 tokens) exceeds the available context size (1024 tokens)" in (await refused).body

    run(test)


def test_an_answer_goes_on_to_the_end_of_the_context_if_nothing_else_is_asked_for() -> None:
    async def test() -> None:
        server = engine(kv_tokens=1024)
        told = await body(server, CHATS, {"messages": lone_question(1000)})
        assert told["usage"]["total_tokens"] == 1024
        assert told["choices"][0]["finish_reason"] == "length"

    run(test)


def test_an_answer_sent_back_is_reused_but_for_its_last_token() -> None:
    async def test() -> None:
        server = engine()
        said = (await body(server, "/v1/completions", {"prompt": words(20), "max_tokens": 10}))["choices"][0]["text"]
        again = await body(server, "/v1/completions", {"prompt": words(20) + said + words(3, 99), "max_tokens": 1})
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 20 + 9

    run(test)


def test_a_stream_says_what_a_plain_answer_says() -> None:
    async def test() -> None:
        server = engine()
        plain = await body(server, CHATS, asking(100, 20))
        streamed = await read(await stream(server, CHATS, asking(100, 20, stream=True, timings_per_token=True)))
        deltas = [event["choices"][0]["delta"] for event in streamed[:-1]]
        assert "".join(delta.get("content") or "" for delta in deltas) == plain["choices"][0]["message"]["content"]
        counted = [event["timings"]["predicted_n"] for event in streamed[1:-2]]
        assert counted == list(range(1, 21))
        times = [event["timings"]["predicted_ms"] for event in streamed[1:-2]]
        assert times == sorted(times)
        assert streamed[-2]["timings"]["predicted_ms"] == times[-1]

    run(test)


def test_a_stop_string_ends_a_stream_inside_a_word() -> None:
    async def test() -> None:
        server = engine()
        plain = await body(server, CHATS, asking(100, 6))
        said = plain["choices"][0]["message"]["content"]
        third = said.split()[2]
        stopped = await read(await stream(server, CHATS, asking(100, 6, stream=True, stop=third[1:])))
        deltas = [event["choices"][0]["delta"].get("content") for event in stopped[:-1]]
        assert "".join(filter(None, deltas)) == said[: said.index(third[1:])]
        assert stopped[-2]["choices"][0]["finish_reason"] == "stop"
        assert stopped[-2]["timings"]["predicted_n"] == len(said[: said.index(third[1:]) + 1].split())

    run(test)


def test_without_prompt_caching_only_requests_that_ask_for_it_reuse_anything() -> None:
    async def test() -> None:
        server = engine(prefix_caching=False)
        cached = []
        for more in ({}, {}, {"cache_prompt": True}):
            told = await body(server, CHATS, asking(100, 2, **more))
            cached.append(told["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert cached == [0, 0, 99]

    run(test)


@pytest.mark.parametrize("given", [{"authorization": "Bearer secret"}, {"x-api-key": "secret"}])
def test_a_key_opens_everything_but_health_which_is_open(given: dict[str, str]) -> None:
    async def test() -> None:
        server = engine(api_key="secret")
        for path in ("/v1/models", "/props", "/metrics", "/nothing"):
            closed = await answer(server, path)
            assert (closed.status, json.loads(closed.body)["error"]["message"]) == (401, "Invalid API Key")
        assert (await answer(server, "/health")).status == 200
        assert (await answer(server, "/props", headers=given)).status == 200
        assert (await answer(server, "/props", headers={"authorization": "Bearer other"})).status == 401

    run(test)


def test_without_metrics_the_page_says_how_to_get_it() -> None:
    async def test() -> None:
        server = engine(metrics=False)
        refused = await answer(server, "/metrics")
        assert refused.status == 501
        assert json.loads(refused.body)["error"] == {
            "code": 501,
            "message": "This server does not support metrics endpoint. Start it with `--metrics`",
            "type": "not_supported_error",
        }
        assert (await body(server, "/props"))["endpoint_metrics"] is False

    run(test)


def test_counters_are_the_sums_of_what_the_answers_say() -> None:
    async def test() -> None:
        server = engine(slots=3)
        asked = [asking(60 + 7 * number, 1 + number) for number in range(12)]
        told = await asyncio.gather(*(body(server, CHATS, one) for one in asked))
        usages = [one["usage"] for one in told]
        found = await values(server)
        cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
        assert found["prompt_tokens_cached_total"] == cached > 0
        assert found["prompt_tokens_total"] == sum(usage["prompt_tokens"] for usage in usages) - cached
        assert found["tokens_predicted_total"] == sum(usage["completion_tokens"] for usage in usages) == 78
        assert 1 < found["n_busy_slots_per_decode"] <= 3

    run(test)


def test_a_slot_that_was_saved_is_restored_in_a_new_process(tmp_path: Path) -> None:
    async def test() -> None:
        kept = {"slot_save_path": str(tmp_path / "slots")}
        server = engine(**kept)
        await answer(server, CHATS, asking(100, 5))
        saved = await body(server, "/slots/0", {"filename": "a.bin"}, query={"action": "save"})
        assert saved["n_saved"] == 104
        path = tmp_path / "slots" / "a.bin"
        assert (path.stat().st_size, path.stat().st_mode & 0o777) == (saved["n_written"], 0o600)
        other = engine(**kept)
        restored = await body(other, "/slots/0", {"filename": "a.bin"}, query={"action": "restore"})
        assert (restored["n_restored"], restored["n_read"]) == (104, saved["n_written"])
        again = await body(other, CHATS, asking(100, 1))
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 99

    run(test)


@pytest.mark.parametrize("options", [{"preset": "cpu"}, {"kv_tokens": 512, "slots": 2}])
def test_a_state_of_another_model_or_too_long_a_one_is_refused_and_the_slot_is_empty(
    options: dict[str, Any], tmp_path: Path
) -> None:
    async def test() -> None:
        server = engine(slot_save_path=str(tmp_path))
        await answer(server, CHATS, asking(300, 1))
        await answer(server, "/slots/0", {"filename": "a"}, query={"action": "save"})
        other = engine(slot_save_path=str(tmp_path), **options)
        await answer(other, CHATS, asking(50, 1))
        refused = await answer(other, "/slots/0", {"filename": "a"}, query={"action": "restore"})
        assert refused.status == 400
        assert (await body(other, "/slots/0", {}, query={"action": "erase"}))["n_erased"] == 0

    run(test)


@pytest.mark.parametrize("action", ["save", "restore", "erase", "what"])
def test_without_a_folder_for_them_slots_are_neither_saved_nor_erased(action: str) -> None:
    async def test() -> None:
        refused = await answer(engine(), "/slots/0", {"filename": "a.bin"}, query={"action": action})
        assert refused.status == 501
        assert b"--slot-save-path" in refused.body

    run(test)
