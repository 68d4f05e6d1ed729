"""What a simulated mlx-lm server does beyond single exchanges, without HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from harness.sim.clock import VirtualClock
from harness.sim.manners.mlx_lm import MlxLm
from harness.sim.options import SimOptions
from harness.sim.web import Streamed
from tests.sim.exchange import Response
from tests.sim.manner import answer, run, say
from tests.sim.sized import chat, lone_question, words

CHATS, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
LENGTH = {"content-length": "1"}
"""A header without which nothing is read."""


def engine(**options: Any) -> MlxLm:
    """On virtual time: nothing waits for a clock."""
    return MlxLm(SimOptions(manner="mlx-lm", **options), VirtualClock())


def asking(prompt_tokens: int, output_tokens: int, **more: Any) -> dict[str, Any]:
    return {"messages": lone_question(prompt_tokens), "max_tokens": output_tokens, **more}


async def body(server: MlxLm, path: str, sent: Any) -> Any:
    return json.loads((await answer(server, path, sent, headers=LENGTH)).body)


async def begun(server: MlxLm, path: str, sent: Any) -> Streamed:
    streamed = await say(server, path, {**sent, "stream": True}, headers=LENGTH)
    assert isinstance(streamed, Streamed)
    return streamed


async def read(streamed: Streamed) -> list[Any]:
    """Its events."""
    return Response(200, {}, b"".join([piece async for piece in streamed.pieces])).events


async def cached(server: MlxLm, sent: Any) -> int:
    told = await body(server, CHATS, sent)
    return int(told["usage"]["prompt_tokens_details"]["cached_tokens"])


def test_a_request_without_a_length_is_not_read() -> None:
    async def test() -> None:
        refused = await answer(engine(), CHATS, asking(20, 1))
        assert refused.status == 411
        assert json.loads(refused.body) == {"error": "Content-Length header is required"}

    run(test)


def test_the_prefill_is_told_step_by_step() -> None:
    async def test() -> None:
        streamed = await begun(engine(), CHATS, {"messages": chat(5028, 5014, words(4)), "max_tokens": 1})
        pieces = [piece async for piece in streamed.pieces]
        assert pieces[:4] == [
            b": keepalive 2048/5028\n\n",
            b": keepalive 4096/5028\n\n",
            b": keepalive 5014/5028\n\n",
            b": keepalive 5027/5028\n\n",
        ]

    run(test)


def test_a_stream_says_what_a_plain_answer_says() -> None:
    async def test() -> None:
        server = engine()
        plain = await body(server, CHATS, asking(100, 20))
        events = await read(await begun(server, CHATS, asking(100, 20)))
        chunks = [event for event in events if isinstance(event, dict) and "choices" in event]
        said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
        assert said == plain["choices"][0]["message"]["content"]
        assert len(said.split()) == 20

    run(test)


def test_a_stop_word_that_is_a_token_ends_a_stream() -> None:
    async def test() -> None:
        server = engine()
        plain = await body(server, COMPLETIONS, {"prompt": words(20), "max_tokens": 20})
        said = plain["choices"][0]["text"].split()
        stop = next(word for word in said[5:] if word not in said[:5])
        streamed = await begun(
            server,
            COMPLETIONS,
            {"prompt": words(20), "max_tokens": 20, "stop": f" {stop}", "stream_options": {"include_usage": True}},
        )
        *chunks, last, usage, done = [event for event in await read(streamed) if "comment" not in event]
        place = said.index(stop)
        assert "".join(chunk["choices"][0]["text"] for chunk in chunks).split() == said[:place]
        assert last["choices"][0] == {"index": 0, "finish_reason": "stop", "text": ""}
        assert usage["usage"]["completion_tokens"] == place + 1
        assert done == "[DONE]"

    run(test)


def test_a_stream_breaks_off_where_the_options_lack_what_it_looks_for() -> None:
    async def test() -> None:
        events = await read(await begun(engine(), CHATS, {**asking(20, 2), "stream_options": {}}))
        assert events[-1]["choices"][0]["finish_reason"] == "length"

    run(test)


def test_an_answer_sent_back_is_reused_whole_if_its_first_word_has_its_space() -> None:
    async def test() -> None:
        server = engine()
        said = (await body(server, COMPLETIONS, {"prompt": words(20), "max_tokens": 10}))["choices"][0]["text"]
        counts = []
        for answer_sent in (said, f" {said}"):
            again = {"prompt": words(20) + answer_sent + words(3, 99), "max_tokens": 1}
            counts.append((await body(server, COMPLETIONS, again))["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert counts == [20, 30]

    run(test)


def test_a_client_that_hangs_up_leaves_the_prompt_without_its_last_token() -> None:
    async def test() -> None:
        server = engine()
        streamed = await begun(server, CHATS, asking(100, 500))
        while b"data" not in await anext(streamed.pieces):
            pass
        await streamed.pieces.aclose()
        await asyncio.sleep(0.01)
        assert await cached(server, asking(100, 1)) == 99

    run(test)


def test_its_store_keeps_as_many_prompts_as_it_is_told() -> None:
    async def test() -> None:
        server = engine(entries=2)
        prompts = [{"messages": chat(300, 280, words(2), system=number * 40), "max_tokens": 1} for number in range(3)]
        assert [await cached(server, prompt) for prompt in prompts] == [0, 7, 7]
        assert [await cached(server, prompt) for prompt in (prompts[2], prompts[1], prompts[0])] == [299, 299, 7]

    run(test)


def test_banned_ends_of_an_answer_change_nothing_as_none_comes() -> None:
    async def test() -> None:
        server = engine()
        plain = await body(server, CHATS, asking(50, 12))
        banned = await body(server, CHATS, asking(50, 12, logit_bias={"1951": -100, "1953": -100.0}))
        assert banned["choices"] == plain["choices"]

    run(test)
