"""What requests the simulated vLLM takes, and how it answers them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.subject import token_ids
from tests.sim.manner import answer, events, run
from tests.sim.recorded_run import CHAT, COMPLETION, forced, streamed
from tests.sim.sized import chat, words
from tests.sim.test_vllm import LONG, vllm


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({"cache_salt": "a/b"}, "cache_salt", "none of @, / and"),
        ({"cache_salt": "a" * 129}, "cache_salt", "at most 128"),
        (
            {"max_tokens": 1900},
            "input_tokens",
            "you requested 1900 output tokens and your prompt contains at least 149",
        ),
        ({"max_tokens": "many"}, "body.max_tokens", "'loc': 'body.max_tokens'"),
        ({"messages": 5, "stream": "x"}, "body.stream", "2 validation errors"),
        ({"n": 2}, None, "several answers"),
    ],
)
def test_a_request_that_cannot_be_served_is_told_why(body: dict[str, Any], param: str | None, says: str) -> None:
    async def job() -> None:
        refused = await answer(vllm(), CHAT, {**streamed(LONG), **body})
        error = json.loads(refused.body)["error"]
        assert (refused.status, error["code"], error["param"]) == (400, 400, param)
        assert says in error["message"]

    run(job)


@pytest.mark.parametrize("prompt", [["a", "b"], [[1], [2]], [], "", [5000], [-1]])
def test_only_one_prompt_of_known_tokens_is_completed(prompt: Any) -> None:
    async def job() -> int:
        return (await answer(vllm(), COMPLETION, forced({"prompt": prompt}))).status

    assert run(job) == 400


def test_a_prompt_that_the_cache_has_no_room_for_is_an_error_in_the_stream() -> None:
    """One block of the cache holds nothing, so what fits into the context may not fit into the cache."""
    messages = chat(2030, 2010, words(1, 20))

    async def job() -> None:
        manner = vllm(kv_tokens=2048)
        error, done = await events(manner, CHAT, streamed(messages))
        assert (error["error"]["code"], done) == (500, "[DONE]")
        refused = await answer(manner, CHAT, forced({"messages": messages}))
        assert refused.status == 500
        assert json.loads(refused.body) == error

    run(job)


def test_an_empty_body_lacks_everything() -> None:
    async def job() -> str:
        refused = await answer(vllm(), CHAT, b"")
        assert refused.status == 400
        return str(json.loads(refused.body)["error"]["message"])

    assert (
        run(job) == "1 validation error:\n  {'type': 'missing', 'loc': 'body', 'msg': 'Field required', 'input': None}"
    )


def test_a_prompt_means_the_same_as_text_as_ids_and_alone_in_a_list() -> None:
    text = words(50, 300)

    async def job() -> set[str]:
        manner = vllm()
        prompts = (text, token_ids(text), [text], [token_ids(text)])
        bodies = [json.loads((await answer(manner, COMPLETION, forced({"prompt": one}))).body) for one in prompts]
        assert [body["usage"]["prompt_tokens_details"]["cached_tokens"] for body in bodies] == [0, 32, 32, 32]
        return {body["choices"][0]["text"] for body in bodies}

    assert len(run(job)) == 1


def test_content_in_parts_is_text_in_lines() -> None:
    parts = [{"type": "text", "text": "# the of"}, {"type": "text", "text": "# and"}]

    async def job() -> list[int]:
        manner = vllm()
        asked = [[{"role": "user", "content": content}] for content in (parts, "# the of\n# and")]
        bodies = [json.loads((await answer(manner, "/tokenize", {"messages": one})).body) for one in asked]
        assert bodies[0]["tokens"] == bodies[1]["tokens"]
        return [body["count"] for body in bodies]

    assert len(set(run(job))) == 1


def test_a_stream_of_ids_is_the_answer() -> None:
    async def job() -> None:
        manner = vllm()
        body = {**forced({"prompt": words(40)}, 6, stream=True), "return_token_ids": True}
        *chunks, done = await events(manner, COMPLETION, body)
        assert done == "[DONE]"
        choices = [chunk["choices"][0] for chunk in chunks]
        assert choices[0]["prompt_token_ids"] == token_ids(words(40))
        assert [one["prompt_token_ids"] for one in choices[1:]] == [None] * 5
        told = [token for one in choices for token in one["token_ids"]]
        assert told == token_ids("".join(one["text"] for one in choices))

    run(job)


def test_without_a_length_the_answer_fills_the_context() -> None:
    async def job() -> None:
        body = {"messages": LONG}
        usage = json.loads((await answer(vllm(context_tokens=512), CHAT, body)).body)["usage"]
        assert usage["total_tokens"] == 512

    run(job)


def test_a_key_guards_the_api_and_nothing_else() -> None:
    async def job() -> list[int]:
        manner = vllm(api_key="secret")
        said = [
            await answer(manner, "/v1/models"),
            await answer(manner, "/v1/models", headers={"authorization": "Bearer wrong"}),
            await answer(manner, "/v1/models", headers={"authorization": "Bearer secret"}),
            await answer(manner, "/health"),
            await answer(manner, "/metrics"),
        ]
        return [one.status for one in said]

    assert run(job) == [401, 401, 200, 200, 200]


def test_answers_do_not_depend_on_the_cache() -> None:
    async def job() -> set[str]:
        texts = set()
        for caching in (True, False):
            manner = vllm(prefix_caching=caching)
            for _ in range(2):
                body = json.loads((await answer(manner, CHAT, forced({"messages": LONG}, 20))).body)
                texts.add(body["choices"][0]["message"]["content"])
        return texts

    assert len(run(job)) == 1


def test_another_seed_gives_another_answer() -> None:
    async def job() -> set[str]:
        said = [await answer(vllm(seed=seed), CHAT, forced({"messages": LONG}, 20)) for seed in (0, 1)]
        return {json.loads(one.body)["choices"][0]["message"]["content"] for one in said}

    assert len(run(job)) == 2


def test_a_stop_string_over_two_words_is_found_and_held_back() -> None:
    async def job() -> None:
        manner = vllm()
        whole = json.loads((await answer(manner, CHAT, forced({"messages": LONG}, 9))).body)
        said = whole["choices"][0]["message"]["content"]
        second = said.index(" ", 1)
        stop = said[second - 1 : second + 3]
        *chunks, usage, _ = await events(manner, CHAT, streamed(LONG, 9, stop=stop))
        told = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
        assert "".join(told) == said[: second - 1]
        assert not any(said[second - 1] in one[-1:] for one in told)
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
        assert chunks[-1]["choices"][0]["stop_reason"] == stop
        assert usage["usage"]["completion_tokens"] == 2

    run(job)
