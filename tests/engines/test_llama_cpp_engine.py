from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.collector.metrics_page import parse
from harness.engines.base import Engine
from harness.engines.llama_cpp import LlamaCppEngine
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.scripted_server import Serve

HELLO = [{"role": "user", "content": "# hello"}]


def engine_at(root: str) -> LlamaCppEngine:
    return LlamaCppEngine(Target(url=root), "tiny")


@pytest.fixture(params=["xllamacpp", "llama-server"])
def build(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorded(fixtures: Path) -> dict[str, Any]:
    return routes(fixtures / "xllamacpp")


def routes(folder: Path) -> dict[str, Any]:
    """Routes of a recorded server with one slot and without LoRA adapters."""
    return {
        "GET /props": (folder / "props.body.json").read_text(),
        "GET /v1/models": (folder / "v1_models.body.json").read_text(),
        "GET /lora-adapters": [],
        "POST /tokenize": {"tokens": [1, 2, 3]},
        "POST /apply-template": (folder / "apply_template.body.json").read_text(),
    }


def test_identity_of_the_recorded_builds(serve: Serve, fixtures: Path, build: str) -> None:
    identity = engine_at(serve(routes(fixtures / build))).identify()
    assert (identity.engine, identity.model, identity.model_path) == ("llama-cpp", "tiny", "models/tiny-q8_0.gguf")
    assert (identity.version, identity.build) == {
        "xllamacpp": ("b0-unknown", None),
        "llama-server": ("b0-0c1e57098", "0c1e57098"),
    }[build]
    assert (identity.context_tokens, identity.capacity_tokens) == (8192, 8192)
    assert (identity.slots, identity.granularity_tokens, identity.adapter) == (1, 1, None)
    assert identity.details == {
        "model_alias": "tiny",
        "model_ftype": "Q8_0",
        "endpoint_metrics": "True",
        "endpoint_slots": "True",
        "speculative": "none",
        "n_params": "9370880",
        "n_ctx_train": "32768",
        "n_vocab": "1010",
        "size": "9975360",
    }


def test_what_the_server_does_not_tell_is_none_with_a_reason(serve: Serve, fixtures: Path, build: str) -> None:
    identity = engine_at(serve(routes(fixtures / build))).identify()
    assert (identity.prefix_caching, identity.kv_dtype) == (None, None)
    unknown = dict(identity.unknown)
    assert ("build" in unknown) == (build == "xllamacpp")
    unknown.pop("build", None)
    assert set(unknown) == {"prefix_caching", "kv_dtype", "cache_ram"}
    assert "--cache-prompt" in unknown["prefix_caching"]
    assert "--cache-type-k" in unknown["kv_dtype"]
    assert "--cache-ram" in unknown["cache_ram"]


def test_capacity_of_several_slots_is_not_guessed(serve: Serve, recorded: dict[str, Any]) -> None:
    props = {**json.loads(recorded["GET /props"]), "total_slots": 4}
    identity = engine_at(serve({**recorded, "GET /props": props})).identify()
    assert (identity.slots, identity.capacity_tokens) == (4, None)
    assert identity.unknown["capacity_tokens"] == (
        "8192 tokens if the slots share one KV buffer (--kv-unified), 32768 if each has its own (--no-kv-unified), "
        "which llama-server does not tell: give identity.capacity_tokens in the target file"
    )
    assert "its 4 slots share one KV buffer" in identity.unknown["kv_unified"]


def test_a_server_without_metrics_is_told_with_the_flag(serve: Serve, recorded: dict[str, Any]) -> None:
    props = {**json.loads(recorded["GET /props"]), "endpoint_metrics": False}
    identity = engine_at(serve({**recorded, "GET /props": props})).identify()
    assert "--metrics" in identity.unknown["metrics"]


def test_an_old_build_that_tells_less_is_identified_as_far_as_it_goes(serve: Serve) -> None:
    old = {
        "GET /props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1},
        "GET /v1/models": {"data": [{"id": "tiny", "owned_by": "llamacpp", "meta": None}]},
        "POST /tokenize": {"tokens": [1, 2, 3]},
    }
    identity = engine_at(serve(old)).identify()
    assert (identity.context_tokens, identity.slots) == (4096, 1)
    missing = {name for name in ("version", "build", "model_path", "template_fingerprint") if name in identity.unknown}
    assert len(missing) == 4
    assert "--lora" in identity.unknown["adapter"]


def test_adapters_at_work_are_part_of_the_identity(serve: Serve, recorded: dict[str, Any]) -> None:
    loaded = [
        {"id": 0, "path": "style.gguf", "scale": 1.0},
        {"id": 1, "path": "idle.gguf", "scale": 0.0},
        {"id": 2, "path": "law.gguf", "scale": 0.5},
    ]
    identity = engine_at(serve({**recorded, "GET /lora-adapters": loaded})).identify()
    assert identity.adapter == "style.gguf x 1, law.gguf x 0.5"


def test_its_counters_over_a_request_are_that_requests_usage(fixtures: Path, build: str) -> None:
    """Recorded: a page, a cold request of 1,534 tokens, a page, a warm one of 1,529 tokens, a page; 16 tokens each."""

    def counts(name: str) -> dict[str, float]:
        samples = {sample.name: sample.value for sample in parse((fixtures / build / f"{name}.body.txt").read_text())}
        return {
            metric.meaning: samples[metric.names[0]] for metric in LlamaCppEngine.metrics if metric.kind == "counter"
        }

    def change(earlier: dict[str, float], later: dict[str, float]) -> dict[str, float]:
        return {meaning: later[meaning] - value for meaning, value in earlier.items()}

    before, after_cold, after_warm = map(counts, ("metrics_before", "metrics_after_cold", "metrics_after_warm"))
    cold, warm = change(before, after_cold), change(after_cold, after_warm)
    assert cold == {"cached_prompt_tokens": 7, "computed_prompt_tokens": 1534 - 7, "generated_tokens": 16}
    assert warm == {"cached_prompt_tokens": 1515, "computed_prompt_tokens": 1529 - 1515, "generated_tokens": 16}


def test_a_recorded_page_shows_an_idle_server(fixtures: Path, build: str) -> None:
    page = parse((fixtures / build / "metrics_after_warm.body.txt").read_text())
    assert engine_at("http://h").is_idle({sample.name: sample.value for sample in page}) is True


def test_token_ids_and_a_slot_can_be_asked_for() -> None:
    engine = engine_at("http://h")
    payload = engine.ids_payload([5, 6, 7], 4, slot=2)
    assert (payload["prompt"], payload["max_tokens"], payload["id_slot"]) == ([5, 6, 7], 4, 2)
    assert (payload["ignore_eos"], payload["stream"]) == (True, True)
    assert engine.chat_payload(HELLO, 4, slot=0)["id_slot"] == 0
    assert "id_slot" not in engine.chat_payload(HELLO, 4)


def test_it_has_no_cache_salt() -> None:
    engine: Engine = engine_at("http://h")
    assert not engine.takes_cache_salt
    with pytest.raises(ValueError, match="takes no cache salt"):
        engine.chat_payload(HELLO, 4, cache_salt="a")


def test_fingerprints_change_with_what_they_stand_for(serve: Serve, recorded: dict[str, Any]) -> None:
    def fingerprints(changes: dict[str, Any]) -> tuple[str | None, str | None]:
        identity = engine_at(serve({**recorded, **changes})).identify()
        return identity.template_fingerprint, identity.tokenizer_fingerprint

    props, models = json.loads(recorded["GET /props"]), json.loads(recorded["GET /v1/models"])
    template, tokenizer = fingerprints({})
    assert fingerprints({}) == (template, tokenizer)
    other_template = fingerprints({"GET /props": {**props, "chat_template": "{{ messages }}"}})
    assert other_template[0] != template
    assert other_template[1] == tokenizer
    assert fingerprints({"POST /tokenize": {"tokens": [1, 2, 4]}})[1] != tokenizer
    models["data"][0]["meta"]["n_vocab"] = 1011
    assert fingerprints({"GET /v1/models": models})[1] != tokenizer


def test_a_chat_is_rendered_then_tokenised_as_the_server_does_it(serve: Serve, recorded: dict[str, Any]) -> None:
    asked: list[dict[str, Any]] = []

    def tokenize(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(json.loads(request["body"]))
        return {"tokens": [5, 6]}

    engine = engine_at(serve({**recorded, "POST /tokenize": tokenize}))
    assert engine.chat_tokens(HELLO) == [5, 6]
    assert engine.count_chat(HELLO) == 2
    assert engine.count_text(" word") == 2
    rendered = "<|im_start|>system\na b<|im_end|>\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n"
    assert asked == [
        {"content": rendered, "add_special": True, "parse_special": True},
        {"content": rendered, "add_special": True, "parse_special": True},
        {"content": " word", "add_special": False, "parse_special": True},
    ]


def test_the_output_length_is_forced() -> None:
    payload = engine_at("http://h").chat_payload(HELLO, 16)
    assert (payload["max_tokens"], payload["ignore_eos"]) == (16, True)
    assert "cache_prompt" not in payload


def test_every_measured_request_gets_a_connection_of_its_own() -> None:
    assert engine_at("http://h").request_headers == {"Connection": "close"}


@pytest.mark.parametrize(
    ("running", "queued", "idle"), [(0.0, 0.0, True), (1.0, 0.0, False), (0.0, 2.0, False), (3.0, 1.0, False)]
)
def test_idle_means_nothing_runs_and_nothing_waits(running: float, queued: float, idle: bool) -> None:
    metrics = {"llamacpp:requests_processing": running, "llamacpp:requests_deferred": queued}
    assert engine_at("http://h").is_idle(metrics) is idle


def test_a_page_without_the_gauges_does_not_tell_whether_it_is_idle() -> None:
    engine: Engine = engine_at("http://h")
    assert engine.is_idle({}) is None
    assert engine.is_idle({"llamacpp:requests_processing": 0.0}) is None


def test_a_reset_erases_every_slot_and_admits_what_it_cannot_reach(
    serve: Serve, recorded: dict[str, Any], fixtures: Path
) -> None:
    props = {**json.loads(recorded["GET /props"]), "total_slots": 2}
    routes = {
        **recorded,
        "GET /props": props,
        "POST /slots/0?action=erase": (fixtures / "xllamacpp" / "slot_erase.body.json").read_text(),  # 1538 tokens
        "POST /slots/1?action=erase": {"id_slot": 1, "n_erased": 12},
    }
    outcome = engine_at(serve(routes)).reset_cache()
    assert not outcome.complete
    assert outcome.message.startswith(
        "1550 tokens in 2 slots were erased; what llama-server keeps in host memory is still"
    )


def test_a_reset_that_the_server_refuses_names_the_flag(serve: Serve, recorded: dict[str, Any]) -> None:
    refusal = (501, {"error": {"code": 501, "message": "This server does not support slots action."}})
    outcome = engine_at(serve({**recorded, "POST /slots/0?action=erase": refusal})).reset_cache()
    assert not outcome.complete
    assert "--slot-save-path" in outcome.message


def test_a_reset_that_fails_otherwise_is_an_error(serve: Serve, recorded: dict[str, Any]) -> None:
    refusal = (500, {"error": {"message": "broken"}})
    with pytest.raises(TargetError, match=r"^slot 0 could not be erased: .* answered 500 \(broken\)$"):
        engine_at(serve({**recorded, "POST /slots/0?action=erase": refusal})).reset_cache()


def test_a_router_is_refused(serve: Serve, recorded: dict[str, Any]) -> None:
    root = serve({**recorded, "GET /props": {"role": "router", "build_info": "b1"}})
    with pytest.raises(TargetError, match="must be llama-server with one model, not a router"):
        engine_at(root).identify()


@pytest.mark.parametrize(
    ("path", "message"),
    [("apply-template", "answered without a prompt"), ("tokenize", "answered without tokens")],
)
def test_a_server_that_only_looks_like_llama_cpp_is_refused(
    serve: Serve, recorded: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(TargetError, match=message):
        engine_at(serve({**recorded, f"POST /{path}": {"ok": True}})).count_chat(HELLO)
