"""The simulated mlx-lm server against recorded exchanges with the real one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from harness.embedded.server import running_server
from harness.sim.options import SimOptions
from tests.sim.exchange import (
    FIXTURES,
    Difference,
    Response,
    ask,
    compare,
    differences,
    recorded,
    recorded_body,
    unexplained,
)
from tests.sim.mlx_lm_allowed import ALLOWED
from tests.sim.sized import chat, lone_question, request, words

Exchanges = Mapping[str, Response]

CHATS = "/v1/chat/completions"
RESPONSES = sorted(path.name.removesuffix(".response.http") for path in FIXTURES.glob("mlx-lm/*.response.http"))
BODIES = sorted(path.name.removesuffix(".body.json") for path in FIXTURES.glob("mlx-lm/*.body.json"))
"""Recorded without their heads."""


@pytest.fixture(scope="module")
def exchanges() -> Exchanges:
    """All in the order in which they were recorded, as each finds in the store what the ones before it left."""
    options = SimOptions(manner="mlx-lm", time_scale=20.0)
    answers = {}
    with running_server(options) as server:
        ask(server.url, CHATS, {"messages": chat(1100, 1090, words(2), system=500), "max_tokens": 8})
        for name, path, body in [*served(options.model_path), *refused(), *pages()]:
            answers[name] = ask(server.url, path, body)
    return answers


def sized(name: str, messages: Any = None, prompt: str | None = None) -> dict[str, Any]:
    return request(f"mlx-lm/{name}", messages, prompt)


def served(model_path: str) -> Iterator[tuple[str, str, Any]]:
    """Name, path and body. Questions share as many words as the recorded ones did."""

    def one(name: str, messages: Any) -> tuple[str, str, Any]:
        return name, CHATS, sized(name, messages)

    two_words = chat(1527, 1515, words(2, 100) + words(2, 210))
    yield one("chat_stream_cold", chat(1534, 1515, words(5, 200)))
    yield one("chat_stream_warm", chat(1529, 1515, words(6, 100)))
    yield one("chat_stream_long_prompt_keepalives", chat(5028, 5014, words(4), system=900))
    yield one("chat_stream_no_stream_options", two_words)
    yield "v1_completions_stream", "/v1/completions", sized("v1_completions_stream", prompt=words(7, 40))
    yield one("chat_json_warm", chat(1530, 1515, words(4, 100) + words(1, 220)))
    # The recorded stop words are whole words of this vocabulary, and would end the answer.
    yield "chat_json_stop_string", CHATS, {**sized("chat_json_stop_string", two_words), "stop": ["e"]}
    yield one("unknown_model", lone_question(17))
    yield one("after_unknown_model", lone_question(17))
    yield "model_by_path", CHATS, {**sized("model_by_path", lone_question(17)), "model": model_path}


def refused() -> Iterator[tuple[str, str, Any]]:
    for name in ("error_bad_json", "error_not_object"):
        yield name, CHATS, (FIXTURES / "mlx-lm" / f"{name}.request.txt").read_bytes()
    yield "error_bad_type", CHATS, sized("error_bad_type", lone_question(17))
    yield "error_no_messages", CHATS, sized("error_no_messages")
    yield "error_unknown_path", "/nothing/here", None
    yield "error_wrong_method", CHATS, None
    yield "error_metrics", "/metrics", None


def pages() -> Iterator[tuple[str, str, Any]]:
    yield "health", "/health", None
    yield "v1_models", "/v1/models", None


def of_response(exchanges: Exchanges, name: str) -> list[Difference]:
    return compare(recorded(f"mlx-lm/{name}"), exchanges[name])


def of_body(exchanges: Exchanges, name: str) -> list[Difference]:
    return [*differences(recorded_body(f"mlx-lm/{name}.body.json"), exchanges[name].content, "body")]


@pytest.mark.parametrize("name", RESPONSES)
def test_it_answers_as_was_recorded(exchanges: Exchanges, name: str) -> None:
    assert unexplained(of_response(exchanges, name), ALLOWED) == []


@pytest.mark.parametrize("name", BODIES)
def test_its_bodies_are_like_the_recorded_ones(exchanges: Exchanges, name: str) -> None:
    assert unexplained(of_body(exchanges, name), ALLOWED) == []


def test_every_allowance_is_needed(exchanges: Exchanges) -> None:
    found = [difference for name in RESPONSES for difference in of_response(exchanges, name)]
    found += [difference for name in BODIES for difference in of_body(exchanges, name)]
    assert [one.where for one in ALLOWED if not any(one.covers(difference) for difference in found)] == []


def test_the_first_word_of_an_answer_comes_without_the_space_before_it(exchanges: Exchanges) -> None:
    first, *others = [
        choice["delta"]["content"]
        for event in exchanges["chat_stream_cold"].events
        if isinstance(event, dict)
        for choice in event.get("choices", [])
        if "content" in choice["delta"]
    ]
    assert not first.startswith(" ")
    assert len(others) == 15
    assert all(word.startswith(" ") for word in others)


def test_a_stop_word_inside_other_words_is_taken_out_and_the_answer_goes_on(exchanges: Exchanges) -> None:
    body = json.loads(exchanges["chat_json_stop_string"].body)
    assert body["usage"]["completion_tokens"] == 64
    said = body["choices"][0]["message"]["content"]
    assert len(said.split()) == 64
    assert "e" not in said
