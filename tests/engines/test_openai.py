from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.base import Engine
from harness.engines.control import Control
from harness.engines.openai import OpenAIEngine, list_models
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Serve

HELLO = [{"role": "user", "content": "# hello"}]


def engine_at(root: str, model: str = "tiny") -> OpenAIEngine:
    return OpenAIEngine(Target(url=root), model)


@pytest.mark.parametrize(
    ("file", "model", "path", "context_tokens", "details"),
    [
        ("vllm/00-get-v1-models.body.json", "tiny", "./tiny-s", 4096, {"owned_by": "vllm"}),
        ("sglang/00-get-v1-models.body.json", "tiny", "tiny", 4096, {"owned_by": "sglang"}),
        ("llama-server/v1_models.body.json", "tiny", None, 8192, {"owned_by": "llamacpp"}),
        ("mlx-lm/v1_models.body.json", "models/tiny-hf-small", None, None, {}),
    ],
)
def test_identity_is_what_the_list_of_models_says(
    serve: Serve,
    fixtures: Path,
    file: str,
    model: str,
    path: str | None,
    context_tokens: int | None,
    details: dict[str, str],
) -> None:
    identity = engine_at(serve({"GET /v1/models": (fixtures / file).read_text()}), model).identify()
    assert (identity.engine, identity.model, identity.context_tokens) == ("openai", model, context_tokens)
    assert (identity.model_path, identity.adapter, identity.details) == (path, None, details)
    assert (identity.version, identity.capacity_tokens, identity.slots, identity.prefix_caching) == (None,) * 4
    assert "the OpenAI API has no word for it" in identity.unknown["capacity_tokens"]
    assert ("context_tokens" in identity.unknown) is (context_tokens is None)


def test_a_chat_asks_for_a_stream_with_usage() -> None:
    assert engine_at("http://h").chat_payload(HELLO, 16) == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "# hello"}],
        "max_tokens": 16,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_chat_is_counted_by_a_real_request_for_one_token(serve: Serve) -> None:
    sent: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        sent.append(json.loads(request["body"]))
        return {"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 1}}

    assert engine_at(serve({"POST /v1/chat/completions": answer})).count_chat(HELLO) == 12
    assert sent == [{"model": "tiny", "messages": HELLO, "max_tokens": 1, "temperature": 0, "stream": False}]


@pytest.mark.parametrize("body", [{"choices": []}, {"choices": [], "usage": {"completion_tokens": 1}}])
def test_a_server_without_usage_cannot_count(serve: Serve, body: dict[str, Any]) -> None:
    root = serve({"POST /v1/chat/completions": body})
    with pytest.raises(TargetError, match=rf"^{root}/v1/chat/completions reports no usage.prompt_tokens"):
        engine_at(root).count_chat(HELLO)


def test_a_refused_request_is_told_in_the_engines_words(serve: Serve) -> None:
    root = serve({"POST /v1/chat/completions": (400, {"error": {"message": "too long"}})})
    with pytest.raises(TargetError, match=r"chat/completions answered 400 \(too long\)$"):
        engine_at(root).count_chat(HELLO)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, "Not Found"), "404 (Not Found)"),
        ((200, "<html>hello</html>"), "200 (<html>hello</html>)"),
        ((200, {"models": []}), '200 ({"models": []})'),
        ((200, {"data": [{"name": "tiny"}]}), '200 ({"data": [{"name": "tiny"}]})'),
    ],
)
def test_what_is_no_openai_server_is_told_with_what_came(serve: Serve, answer: tuple[int, Any], told: str) -> None:
    root = serve({"GET /v1/models": answer})
    with pytest.raises(TargetError) as caught:
        list_models(Control(Target(url=root)))
    assert str(caught.value) == (
        f"{root}/v1 is no OpenAI-compatible server, or not its base URL: GET {root}/v1/models should list models, "
        f"but answered {told}"
    )


def test_what_the_api_does_not_offer_is_none_and_never_zero() -> None:
    engine: Engine = engine_at("http://h")
    assert engine.metrics == ()
    assert engine.count_text("hello") is None
    assert engine.is_idle({"requests": 0.0}) is None
    assert engine_at("http://h").chat_tokens(HELLO) is None
    outcome = engine.reset_cache()
    assert not outcome.complete
    assert "no call that empties a cache" in outcome.message
