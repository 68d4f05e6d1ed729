from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.detect import bind, connect
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.openai import OpenAIEngine
from harness.engines.sglang import SglangEngine
from harness.engines.target import Target
from harness.engines.vllm import VllmEngine
from harness.errors import TargetError
from tests.engines.scripted_server import Routes, Serve

TWO_MODELS = {"data": [{"id": "a", "owned_by": "someone", "aliases": ["big"]}, {"id": "b", "owned_by": "someone"}]}


@pytest.mark.parametrize("server", ["xllamacpp", "llama-server"])
def test_llama_cpp_is_known_by_its_list_of_models(serve: Serve, fixtures: Path, server: str) -> None:
    root = serve({"GET /v1/models": (fixtures / server / "v1_models.body.json").read_text()})
    assert type(connect(Target(url=root))) is LlamaCppEngine


def test_llama_cpp_behind_a_rewritten_list_is_known_by_its_props(serve: Serve, fixtures: Path) -> None:
    props = (fixtures / "xllamacpp" / "props.body.json").read_text()
    root = serve({"GET /v1/models": TWO_MODELS, "GET /props": props})
    assert type(connect(Target(url=root))) is LlamaCppEngine


@pytest.mark.parametrize(("folder", "adapter"), [("vllm", VllmEngine), ("sglang", SglangEngine)])
def test_vllm_and_sglang_are_known_by_their_lists_of_models(
    serve: Serve, fixtures: Path, folder: str, adapter: type[OpenAIEngine]
) -> None:
    root = serve({"GET /v1/models": (fixtures / folder / "00-get-v1-models.body.json").read_text()})
    assert type(connect(Target(url=root))) is adapter


def test_vllm_behind_a_rewritten_list_is_known_by_its_version(serve: Serve, fixtures: Path) -> None:
    version = (fixtures / "vllm" / "00-get-version.body.json").read_text()
    root = serve({"GET /v1/models": TWO_MODELS, "GET /version": version})
    assert type(connect(Target(url=root))) is VllmEngine


def test_sglang_behind_a_rewritten_list_is_known_by_its_server_info(serve: Serve, fixtures: Path) -> None:
    info = (fixtures / "sglang" / "00-get-server_info.body.json").read_text()
    no_version = (404, (fixtures / "sglang" / "00-get-version.body.json").read_text())
    root = serve({"GET /v1/models": TWO_MODELS, "GET /version": no_version, "GET /server_info": info})
    assert type(connect(Target(url=root))) is SglangEngine


@pytest.mark.parametrize(
    "routes",
    [
        {},
        {"GET /version": {"version": "v2.26.0 (3c1ca0e)"}},  # LocalAI
        {"GET /version": {"version": "0.9.1", "commit": "abc"}},
        {"GET /version": {"major": "1", "minor": "31"}},
        {"GET /version": "0.9.1"},
        {"GET /server_info": {"vllm_config": "model='tiny'", "vllm_env": {}}},  # vLLM's own, with its /version hidden
        {"GET /server_info": {"version": "1.0"}},
    ],
)
def test_other_servers_get_the_generic_adapter(serve: Serve, routes: Routes) -> None:
    assert type(connect(Target(url=serve({"GET /v1/models": TWO_MODELS, **routes})))) is OpenAIEngine


def test_a_list_that_names_its_engine_is_believed(serve: Serve, fixtures: Path) -> None:
    """A gateway may answer for several servers: the list is that of the model's own."""
    listed = (fixtures / "sglang" / "00-get-v1-models.body.json").read_text()
    root = serve({"GET /v1/models": listed, "GET /version": {"version": "0.32.0"}})
    assert type(connect(Target(url=root))) is SglangEngine


def test_the_target_file_can_say_which_engine_it_is(serve: Serve, fixtures: Path) -> None:
    root = serve({"GET /v1/models": (fixtures / "xllamacpp" / "v1_models.body.json").read_text()})
    assert type(connect(Target(url=root, engine="openai"))) is OpenAIEngine


def test_each_adapter_looks_at_one_page_at_most(serve: Serve) -> None:
    """Those of mlx-lm, whose server shows nothing of its own, are looked at only where its kind of server answers."""
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> Any:
        asked.append(request["path"])
        return TWO_MODELS if request["path"] == "/v1/models" else (404, "Not Found")

    paths = ("/v1/models", "/version", "/server_info", "/props", "/health", "/metrics")
    connect(Target(url=serve({f"GET {path}": answer for path in paths})))
    assert asked == ["/v1/models", "/version", "/server_info", "/props"]


def test_a_list_that_names_its_engine_is_all_that_is_asked(serve: Serve, fixtures: Path) -> None:
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> Any:
        asked.append(request["path"])
        return (fixtures / "vllm" / "00-get-v1-models.body.json").read_text()

    connect(Target(url=serve({"GET /v1/models": answer, "GET /version": answer})))
    assert asked == ["/v1/models"]


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
    with pytest.raises(
        TargetError, match="no adapter for an engine 'vlm'; there are vllm, sglang, llama-cpp, mlx-lm, openai"
    ):
        bind("vlm", nowhere, "tiny")
