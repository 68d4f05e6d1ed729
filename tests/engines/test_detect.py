from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.detect import bind, connect
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Serve

TWO_MODELS = {"data": [{"id": "a", "owned_by": "someone", "aliases": ["big"]}, {"id": "b", "owned_by": "someone"}]}


@pytest.mark.parametrize("server", ["xllamacpp", "llama-server"])
def test_llama_cpp_is_known_by_its_list_of_models(serve: Serve, fixtures: Path, server: str) -> None:
    root = serve({"GET /v1/models": (fixtures / server / "v1_models.body.json").read_text()})
    assert type(connect(Target(url=root))) is LlamaCppEngine


def test_llama_cpp_behind_a_rewritten_list_is_known_by_its_props(serve: Serve, fixtures: Path) -> None:
    props = (fixtures / "xllamacpp" / "props.body.json").read_text()
    root = serve({"GET /v1/models": TWO_MODELS, "GET /props": props})
    assert type(connect(Target(url=root))) is LlamaCppEngine


@pytest.mark.parametrize("file", ["vllm/00-get-v1-models", "sglang/00-get-v1-models", "mlx-lm/v1_models"])
def test_other_servers_get_the_generic_adapter(serve: Serve, fixtures: Path, file: str) -> None:
    root = serve({"GET /v1/models": (fixtures / f"{file}.body.json").read_text()})
    assert type(connect(Target(url=root))) is OpenAIEngine


def test_the_target_file_can_say_which_engine_it_is(serve: Serve, fixtures: Path) -> None:
    root = serve({"GET /v1/models": (fixtures / "xllamacpp" / "v1_models.body.json").read_text()})
    assert type(connect(Target(url=root, engine="openai"))) is OpenAIEngine


def test_only_the_list_and_the_props_are_asked(serve: Serve) -> None:
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> Any:
        asked.append(request["path"])
        return TWO_MODELS if request["path"] == "/v1/models" else (404, "Not Found")

    connect(Target(url=serve({"GET /v1/models": answer, "GET /props": answer})))
    assert asked == ["/v1/models", "/props"]


def test_the_first_model_is_taken_unless_one_is_named(serve: Serve) -> None:
    root = serve({"GET /v1/models": TWO_MODELS})
    assert connect(Target(url=root)).model == "a"
    assert connect(Target(url=root, model="b")).model == "b"
    assert connect(Target(url=root, model="big")).model == "big"


def test_a_model_that_is_not_there_is_told_with_those_that_are(serve: Serve) -> None:
    root = serve({"GET /v1/models": TWO_MODELS})
    with pytest.raises(TargetError) as caught:
        connect(Target(url=root, model="c"))
    assert str(caught.value) == f"{root}/v1 does not serve a model 'c': it has a, b"


def test_a_server_without_a_model_is_told_as_such(serve: Serve) -> None:
    root = serve({"GET /v1/models": json.dumps({"object": "list", "data": []})})
    with pytest.raises(TargetError, match="lists no model: load one first"):
        connect(Target(url=root))
    with pytest.raises(TargetError, match="does not serve a model 'a': it lists no model at all"):
        connect(Target(url=root, model="a"))


def test_an_adapter_is_bound_by_name_without_a_request() -> None:
    nowhere = Target(url="http://127.0.0.1:1")
    engine = bind("llama-cpp", nowhere, "tiny")
    assert (type(engine), engine.model, engine.target) == (LlamaCppEngine, "tiny", nowhere)
    with pytest.raises(TargetError, match="no adapter for an engine 'vlm'; there are llama-cpp, openai"):
        bind("vlm", nowhere, "tiny")
