from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.base import Engine
from harness.engines.control import Control
from harness.engines.detect import connect
from harness.engines.mlx_lm import MlxLmEngine
from harness.engines.openai import list_models
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Request, Serve

HELLO = [{"role": "user", "content": "hello"}]
FINGERPRINT = "0.32.2-0.32.4-Linux-6.18.44-fc-v595-x86_64-with-glibc2.36-x86_64"
CHAT = "POST /v1/chat/completions"


@pytest.fixture
def recorded(fixtures: Path) -> dict[str, Any]:
    """Routes of a recorded mlx_lm.server; the Server header is the scripted server's own, and of the same kind."""
    folder = fixtures / "mlx-lm"
    return {
        "GET /v1/models": (folder / "v1_models.body.json").read_text(),
        "GET /health": (folder / "health.body.json").read_text(),
        "GET /metrics": (404, "Not Found"),
        CHAT: (folder / "model_by_path.body.json").read_text(),
    }


def listing(*names: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 1795962972} for name in names]}


def engine_at(root: str, **target: Any) -> MlxLmEngine:
    return MlxLmEngine(Target(url=root, **target), "default_model")


def test_it_is_detected_and_asked_for_the_model_that_it_was_started_with(
    serve: Serve, recorded: dict[str, Any]
) -> None:
    engine = connect(Target(url=serve(recorded)))
    assert isinstance(engine, MlxLmEngine)
    assert engine.model == "default_model"


def test_a_server_whose_generation_thread_died_is_still_mlx_lm(serve: Serve, recorded: dict[str, Any]) -> None:
    root = serve({**recorded, "GET /health": (503, '{"status": "unavailable"}')})
    assert isinstance(connect(Target(url=root)), MlxLmEngine)


@pytest.mark.parametrize(
    "changes",
    [
        {"GET /health": '{"status":"ok"}'},  # as llama.cpp writes it
        {"GET /health": ""},
        {"GET /metrics": "# TYPE a counter\na 1\n"},
        {"GET /metrics": (404, '{"detail":"Not Found"}')},
        {"GET /v1/models": {"data": [{"id": "tiny", "owned_by": "somebody"}]}},
    ],
)
def test_another_server_of_pythons_library_is_not_taken_for_it(
    serve: Serve, recorded: dict[str, Any], changes: dict[str, Any]
) -> None:
    engine = connect(Target(url=serve({**recorded, **changes})))
    assert not isinstance(engine, MlxLmEngine)


def test_a_server_that_is_not_of_pythons_library_is_asked_nothing_more(serve: Serve) -> None:
    def fail(request: Request) -> Any:
        raise AssertionError(f"asked for {request['path']}")

    control = Control(Target(url=serve({"GET /v1/models": listing("a/b"), "GET /health": fail, "GET /metrics": fail})))
    listed = list_models(control)
    assert listed.server.startswith("BaseHTTP/")
    assert not MlxLmEngine.answers(control, type(listed)(listed.models, "uvicorn"))


def test_the_list_of_models_that_cannot_be_made_is_told_with_what_to_do(serve: Serve, recorded: dict[str, Any]) -> None:
    root = serve({**recorded, "GET /v1/models": ""})
    with pytest.raises(TargetError) as caught:
        connect(Target(url=root))
    assert str(caught.value) == (
        f"GET {root}/v1/models answered with an empty body, as mlx_lm.server does while the folder of its Hugging Face "
        "cache is not there: make that folder on the server's machine (~/.cache/huggingface/hub), or start the server "
        "with HF_HUB_CACHE set to one that exists"
    )


@pytest.mark.parametrize("names", [(), ("org/other",), ("org/other", "org/another", "/models/mine")])
def test_no_other_model_is_loaded_by_accident(serve: Serve, recorded: dict[str, Any], names: tuple[str, ...]) -> None:
    root = serve({**recorded, "GET /v1/models": listing(*names)})
    assert connect(Target(url=root)).model == "default_model"
    assert connect(Target(url=root, model="default_model")).model == "default_model"


def test_a_listed_model_can_be_asked_for_and_no_other(serve: Serve, recorded: dict[str, Any]) -> None:
    root = serve({**recorded, "GET /v1/models": listing("org/other", "/models/mine")})
    assert connect(Target(url=root, model="org/other")).model == "org/other"
    with pytest.raises(TargetError) as caught:
        connect(Target(url=root, model="mine"))
    assert str(caught.value) == (
        f"{root}/v1 does not serve a model 'mine': it has org/other, /models/mine; leave `model` out for the one that "
        "mlx_lm.server was started with, as any other name makes it load that"
    )


def test_identity_of_the_recorded_server(serve: Serve, recorded: dict[str, Any]) -> None:
    identity = engine_at(serve(recorded)).identify()
    assert (identity.engine, identity.model) == ("mlx-lm", "default_model")
    assert (identity.version, identity.build) == ("0.32.2", FINGERPRINT)
    assert identity.details == {"mlx": "0.32.4", "platform": "Linux-6.18.44-fc-v595-x86_64-with-glibc2.36-x86_64"}
    assert identity.granularity_tokens == 1
    not_told = {
        *("model_path", "context_tokens", "capacity_tokens", "slots", "prefix_caching", "kv_dtype", "adapter"),
        *("template_fingerprint", "tokenizer_fingerprint"),
    }
    assert {name for name in not_told if getattr(identity, name) is not None} == set()
    assert set(identity.unknown) == not_told | {"prompt_cache_size", "prompt_cache_bytes", "output_length"}
    assert "--kv-bits" in identity.unknown["kv_dtype"]
    assert "--prompt-cache-size" in identity.unknown["capacity_tokens"]
    assert "eos_token_ids" in identity.unknown["output_length"]


def test_identity_costs_one_token(serve: Serve, recorded: dict[str, Any]) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: Request) -> Any:
        asked.append(json.loads(request["body"]))
        return recorded[CHAT]

    engine_at(serve({**recorded, CHAT: answer})).identify()
    message = {"role": "user", "content": "."}
    assert asked == [{"model": "default_model", "messages": [message], "max_tokens": 1, "temperature": 0}]


def test_a_model_that_was_launched_from_a_folder_is_told_by_its_path(serve: Serve, recorded: dict[str, Any]) -> None:
    root = serve({**recorded, "GET /v1/models": listing("org/other", "/models/mine")})
    identity = engine_at(root).identify()
    assert identity.model_path == "/models/mine"
    assert "model_path" not in identity.unknown
    assert MlxLmEngine(Target(url=root), "org/other").identify().model_path == "org/other"


@pytest.mark.parametrize("fingerprint", [None, "", "fp_44709d6fcb"])
def test_a_fingerprint_of_another_kind_is_no_version(
    serve: Serve, recorded: dict[str, Any], fingerprint: str | None
) -> None:
    reply = {**json.loads(recorded[CHAT]), "system_fingerprint": fingerprint}
    identity = engine_at(serve({**recorded, CHAT: reply})).identify()
    assert identity.version is None
    assert "system_fingerprint" in identity.unknown["version"]


def test_an_mlx_lm_that_does_not_report_cached_tokens_is_told(serve: Serve, recorded: dict[str, Any]) -> None:
    reply = json.loads(recorded[CHAT])
    del reply["usage"]["prompt_tokens_details"]
    identity = engine_at(serve({**recorded, CHAT: reply})).identify()
    assert MlxLmEngine.advice["cached_tokens"] in identity.unknown["cached_tokens"]


def test_a_model_that_cannot_be_loaded_is_told_in_the_servers_words(serve: Serve, recorded: dict[str, Any]) -> None:
    root = serve({**recorded, CHAT: (404, {"error": "no such repository"})})
    with pytest.raises(TargetError) as caught:
        engine_at(root).identify()
    assert str(caught.value) == (
        "mlx_lm.server cannot serve the model 'default_model', it answered 404 (no such repository): see its log; "
        "start it with --model, or give one of those that it lists (models/tiny-hf-small) as `model` in the target file"
    )


def test_requests_are_batched_and_report_usage() -> None:
    assert engine_at("http://h").chat_payload(HELLO, 16) == {
        "model": "default_model",
        "messages": HELLO,
        "max_tokens": 16,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_the_output_length_is_forced_only_by_banning_the_tokens_that_end_answers(
    serve: Serve, recorded: dict[str, Any]
) -> None:
    assert not engine_at("http://h").forces_length
    engine = engine_at(serve(recorded), eos_token_ids=[2, 7])
    assert engine.forces_length
    assert engine.chat_payload(HELLO, 16)["logit_bias"] == {"2": -100.0, "7": -100.0}
    assert "output_length" not in engine.identify().unknown


def test_it_takes_no_token_ids_no_salt_and_no_slot() -> None:
    engine: Engine = engine_at("http://h")
    assert (engine.takes_token_ids, engine.takes_cache_salt, engine.pins_slots) == (False, False, False)
    with pytest.raises(ValueError, match="takes no token ids"):
        engine.ids_payload([1, 2], 4)
    with pytest.raises(ValueError, match="takes no cache salt"):
        engine.chat_payload(HELLO, 4, cache_salt="a")
    with pytest.raises(ValueError, match="its slot"):
        engine.chat_payload(HELLO, 4, slot=0)


def test_it_has_no_tokeniser_and_counts_a_chat_by_asking_for_one_token(serve: Serve, recorded: dict[str, Any]) -> None:
    engine = engine_at(serve(recorded))
    assert engine.count_text("hello") is None
    assert engine.chat_tokens(HELLO) is None
    assert engine.count_chat(HELLO) == 17


def test_what_it_lacks_comes_with_advice() -> None:
    engine = engine_at("http://h")
    assert engine.metrics == ()
    assert engine.is_idle({}) is None
    assert set(engine.advice) == {"caching", "cached_tokens", "metrics", "reset"}
    outcome = engine.reset_cache()
    assert not outcome.complete
    assert "restart it" in outcome.message
