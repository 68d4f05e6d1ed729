"""vLLM 0.32 as recorded, and how its other releases answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines.base import Engine
from harness.engines.target import Target
from harness.engines.vllm import VllmEngine
from tests.engines.metrics_pages import change, config_page, names_on
from tests.engines.scripted_server import Routes, Serve

HELLO = [{"role": "user", "content": "Hi there"}]


def engine_at(root: str, **keys: Any) -> VllmEngine:
    return VllmEngine(Target(url=root, **keys), "tiny")


def models(**entry: Any) -> dict[str, Any]:
    return {"data": [{"id": "tiny", "owned_by": "vllm", **entry}]}


def test_the_identity_of_the_recorded_server(serve: Serve, vllm_routes: Routes) -> None:
    identity = engine_at(serve(vllm_routes)).identify()
    assert (identity.engine, identity.model, identity.version, identity.build) == ("vllm", "tiny", "0.32.0", None)
    assert (identity.model_path, identity.adapter, identity.context_tokens) == ("./tiny-s", None, 4096)
    assert (identity.capacity_tokens, identity.granularity_tokens, identity.slots) == (10240, 32, None)
    assert (identity.prefix_caching, identity.kv_dtype) == (True, "auto")
    # sha-256 of "[501, 390, ...]", the ids of the recorded text, and of those of the recorded chat.
    assert identity.tokenizer_fingerprint == "0a21cd1447e5359b"
    assert identity.template_fingerprint == "1fd9427d821318af"
    assert identity.details == {
        "owned_by": "vllm",
        "block_size": "32",
        "num_gpu_blocks": "320",
        "kv_cache_size_tokens": "10240",
        "cache_dtype": "auto",
        "prefix_caching_hash_algo": "sha256",
        "prefix_cache_retention_interval": "0",
        "mamba_cache_mode": "none",
        "gpu_memory_utilization": "0.92",
        "kv_cache_memory_bytes": "1073741824",
        "engines": "1",
        "capacity": "kv_cache_size_tokens of each engine; one block of it holds nothing",
    }
    assert set(identity.unknown) == {
        "build",
        "slots",
        "max_num_batched_tokens",
        "speculative_config",
        "kv_transfer_config",
        "enable_prompt_tokens_details",
    }
    assert identity.unknown["slots"] == "vLLM does not tell --max-num-seqs"


def test_caching_that_is_off_is_seen(serve: Serve, vllm_routes: Routes, fixtures: Path) -> None:
    off = (fixtures / "vllm" / "60-caching-off-metrics.body.txt").read_text()
    assert engine_at(serve({**vllm_routes, "GET /metrics": off})).identify().prefix_caching is False


@pytest.mark.parametrize(
    ("engines", "capacity", "granularity"),
    [
        # two data-parallel engines: each tells its own tokens
        (['block_size="16",kv_cache_size_tokens="1000"'] * 2, 2000, 16),
        # older: the sum of the blocks of both, in each of which one block holds nothing
        (['block_size="16",num_gpu_blocks="200",kv_cache_size_tokens="None"'] * 2, (200 - 2) * 16, 16),
        (['block_size="16",num_gpu_blocks="None"'], None, 16),
        # a hybrid model: hits are aligned to more than a block
        (['block_size="16",hash_block_size="64",cache_hit_alignment_tokens="784"'], None, 784),
        (['block_size="16",hash_block_size="64",cache_hit_alignment_tokens="None"'], None, 64),
    ],
)
def test_capacity_and_granularity_over_engines_and_releases(
    serve: Serve, vllm_routes: Routes, engines: list[str], capacity: int | None, granularity: int
) -> None:
    identity = engine_at(serve({**vllm_routes, "GET /metrics": config_page(*engines)})).identify()
    assert (identity.capacity_tokens, identity.granularity_tokens) == (capacity, granularity)
    assert identity.details["engines"] == str(len(engines))


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({"vllm_config": {"model_config": {"dtype": "torch.bfloat16"}}}, "bfloat16"),  # in development mode
        ({"vllm_config": "model='tiny', dtype=torch.bfloat16"}, "auto"),
        ((404, {"detail": "Not Found"}), "auto"),
    ],
)
def test_an_automatic_kv_type_is_that_of_the_model_if_the_server_tells_it(
    serve: Serve, vllm_routes: Routes, info: Any, told: str
) -> None:
    routes = {**vllm_routes, "GET /server_info?config_format=json": info}
    identity = engine_at(serve(routes)).identify()
    assert (identity.kv_dtype, identity.details["cache_dtype"]) == (told, "auto")
    fixed = {**routes, "GET /metrics": config_page('cache_dtype="fp8_e4m3",block_size="16"')}
    assert engine_at(serve(fixed)).identify().kv_dtype == "fp8_e4m3"


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ((404, "Not Found"), "answered 404 (Not Found)"),
        ("<html>", "shows no metrics page in Prometheus's text format"),
        ("# TYPE python_info gauge\npython_info 1.0\n", "start vLLM without --disable-log-stats"),
    ],
)
def test_without_its_metrics_page_the_cache_is_unknown_and_it_says_why(
    serve: Serve, vllm_routes: Routes, metrics: Any, reason: str
) -> None:
    identity = engine_at(serve({**vllm_routes, "GET /metrics": metrics})).identify()
    for name in ("capacity_tokens", "granularity_tokens", "prefix_caching", "kv_dtype"):
        assert getattr(identity, name) is None
        assert reason in identity.unknown[name]


def test_of_several_replicas_one_is_asked_and_the_capacity_is_said_to_be_its_own(
    serve: Serve, vllm_routes: Routes
) -> None:
    root = serve(vllm_routes)
    identity = engine_at(root, metrics_urls=["http://127.0.0.1:9/metrics", f"{root}/metrics"]).identify()
    assert identity.capacity_tokens == 10240
    assert identity.details["replicas"] == "2; all that is told here, the capacity too, is that of one"


def test_an_adapter_is_told_from_the_model_under_it(serve: Serve, vllm_routes: Routes) -> None:
    listed = models(root="/models/base", max_model_len=4096)
    listed["data"].append({"id": "law", "owned_by": "vllm", "root": "/adapters/law", "parent": "tiny"})
    engine = VllmEngine(Target(url=serve({**vllm_routes, "GET /v1/models": listed})), "law")
    identity = engine.identify()
    assert (identity.model, identity.adapter, identity.model_path) == ("law", "law", "/models/base")
    assert identity.context_tokens == 4096
    assert identity.details["adapter_root"] == "/adapters/law"


def test_a_development_build_is_told(serve: Serve, vllm_routes: Routes) -> None:
    root = serve({**vllm_routes, "GET /version": {"version": "0.33.0rc1.dev4+g4ba787ec9"}})
    identity = engine_at(root).identify()
    assert (identity.version, identity.build) == ("0.33.0rc1.dev4+g4ba787ec9", "g4ba787ec9")
    assert "build" not in identity.unknown


def test_texts_and_chats_are_tokenised_by_the_server(serve: Serve, vllm_routes: dict[str, Any]) -> None:
    sent: list[dict[str, Any]] = []
    answer = vllm_routes["POST /tokenize"]

    def tokenize(request: dict[str, Any]) -> Any:
        sent.append(json.loads(request["body"]))
        return answer(request)

    engine = engine_at(serve({"POST /tokenize": tokenize}))
    assert engine.count_text("The cache prefix of the document.") == 7
    assert engine.chat_tokens(HELLO) == [1, 87, 85, 337, 201, 42, 75, 401, 2, 201, 1, 278, 85, 276, 86, 280, 86, 201]
    assert engine.count_chat(HELLO) == 18
    assert sent == [
        {"model": "tiny", "prompt": "The cache prefix of the document.", "add_special_tokens": False},
        {"model": "tiny", "messages": HELLO},
        {"model": "tiny", "messages": HELLO},
    ]


def test_a_gateway_without_tokenize_leaves_counting_to_usage(serve: Serve, vllm_routes: Routes) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 18, "completion_tokens": 1}}
    routes = {**vllm_routes, "POST /tokenize": (404, "Not Found"), "POST /v1/chat/completions": usage}
    engine = engine_at(serve(routes))
    assert engine.count_text("hello") is None
    assert engine.chat_tokens(HELLO) is None
    assert engine.count_chat(HELLO) == 18
    identity = engine.identify()
    assert (identity.tokenizer_fingerprint, identity.template_fingerprint) == (None, None)
    assert identity.unknown["tokenizer_fingerprint"] == "POST /tokenize is not there, or not let through"


def test_a_template_without_a_system_message_has_a_fingerprint_too(serve: Serve, vllm_routes: Routes) -> None:
    def tokenize(request: dict[str, Any]) -> Any:
        messages = json.loads(request["body"]).get("messages", [])
        if messages and messages[0]["role"] == "system":
            return 400, {"error": {"message": "System role not supported"}}
        return {"tokens": [1, 2, 3]}

    identity = engine_at(serve({**vllm_routes, "POST /tokenize": tokenize})).identify()
    assert identity.template_fingerprint == "a36b1f2c3f84522d"  # of "[1, 2, 3]"


def test_a_request_has_its_length_forced_and_may_carry_a_salt_or_token_ids() -> None:
    engine = engine_at("http://h")
    assert engine.chat_payload(HELLO, 16, cache_salt="run 1") == {
        "model": "tiny",
        "messages": HELLO,
        "max_tokens": 16,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_salt": "run 1",
        "ignore_eos": True,
    }
    assert engine.ids_payload([5, 6], 2)["prompt"] == [5, 6]
    assert (engine.forces_length, engine.takes_cache_salt, engine.takes_token_ids) == (True, True, True)


@pytest.mark.parametrize("salt", ["", "a/b", "a@b", "a\\b", "x" * 129])
def test_a_salt_that_vllm_refuses_is_not_sent(salt: str) -> None:
    with pytest.raises(ValueError, match="vLLM takes a cache salt of 1 to 128 characters"):
        engine_at("http://h").chat_payload(HELLO, 1, cache_salt=salt)


# --- metrics ------------------------------------------------------------------------------------------


def test_every_metric_is_on_the_recorded_pages(fixtures: Path) -> None:
    for name in ("02-metrics-before", "07-metrics-after"):
        on_page = names_on(fixtures / "vllm" / f"{name}.body.txt")
        for metric in VllmEngine.metrics:
            assert metric.names[0] in on_page, metric


def test_counters_rise_by_what_the_answers_reported(fixtures: Path) -> None:
    """Twelve chats lie between the two pages."""
    folder = fixtures / "vllm"
    usages = json.loads((folder / "03-06-usages.json").read_text())
    pages = folder / "02-metrics-before.body.txt", folder / "07-metrics-after.body.txt"
    for meaning, key in (
        ("prompt_tokens", "prompt_tokens"),
        ("cached_prompt_tokens", "cached_tokens"),
        ("generated_tokens", "completion_tokens"),
    ):
        assert change(VllmEngine.metrics, meaning, *pages) == sum(usage[key] for usage in usages)
    assert change(VllmEngine.metrics, "external_cached_tokens", *pages) == 0


def test_it_is_idle_when_nothing_runs_or_waits() -> None:
    engine: Engine = engine_at("http://h")
    running, waiting = "vllm:num_requests_running", "vllm:num_requests_waiting"
    assert engine.is_idle({running: 0.0, waiting: 0.0}) is True
    assert engine.is_idle({running: 0.0, waiting: 1.0}) is False
    assert engine.is_idle({running: 0.0}) is None
