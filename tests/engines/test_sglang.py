"""SGLang 0.5.23 as recorded, and how its other releases answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.engines import reset
from harness.engines.base import Engine
from harness.engines.sglang import SglangEngine
from harness.engines.target import Target
from harness.errors import TargetError
from tests.engines.metrics_pages import change, names_on
from tests.engines.scripted_server import Routes, Serve

HELLO = [{"role": "user", "content": "Hi there"}]
FLUSH = "POST /flush_cache?timeout=5"


def engine_at(root: str, **keys: Any) -> SglangEngine:
    return SglangEngine(Target(url=root, **keys), "tiny")


def test_the_identity_of_the_recorded_server(serve: Serve, sglang_routes: Routes) -> None:
    identity = engine_at(serve(sglang_routes)).identify()
    assert (identity.engine, identity.model, identity.version, identity.build) == ("sglang", "tiny", "0.5.23", None)
    assert (identity.model_path, identity.adapter, identity.context_tokens) == ("./tiny-s", None, 4096)
    assert (identity.capacity_tokens, identity.granularity_tokens, identity.slots) == (10240, 1, 2048)
    # kv_cache_dtype is auto, dtype bfloat16
    assert (identity.prefix_caching, identity.kv_dtype) == (True, "bfloat16")
    # The same model as that of the recorded vLLM, so the same ids and marks.
    assert identity.tokenizer_fingerprint == "0a21cd1447e5359b"
    assert identity.template_fingerprint == "1fd9427d821318af"
    assert identity.details == {
        "owned_by": "sglang",
        "page_size": "1",
        "disable_radix_cache": "False",
        "radix_eviction_policy": "lru",
        "schedule_policy": "fcfs",
        "chunked_prefill_size": "4096",
        "max_prefill_tokens": "16384",
        "enable_mixed_chunk": "False",
        "kv_cache_dtype": "auto",
        "dtype": "bfloat16",
        "tp_size": "1",
        "dp_size": "1",
        "dcp_size": "1",
        "mem_fraction_static": "0.716",
        "disaggregation_mode": "null",
        "enable_hierarchical_cache": "False",
        "enable_lmcache": "False",
        "enable_flexkv": "False",
        "enable_cache_report": "True",
        "enable_metrics": "True",
        "enable_metrics_for_all_schedulers": "False",
    }
    assert set(identity.unknown) == {"build"}


def test_data_parallel_ranks_and_context_parallel_pages_multiply(
    serve: Serve, sglang_routes: Routes, info: dict[str, Any]
) -> None:
    changed = {**info, "dp_size": 4, "page_size": 64, "dcp_size": 2, "kv_cache_dtype": "fp8_e5m2"}
    identity = engine_at(serve({**sglang_routes, "GET /server_info": changed})).identify()
    assert (identity.capacity_tokens, identity.granularity_tokens, identity.slots) == (40960, 128, 8192)
    assert identity.kv_dtype == "fp8_e5m2"


def test_a_radix_cache_that_is_off_and_a_hierarchical_one_are_seen(
    serve: Serve, sglang_routes: Routes, info: dict[str, Any]
) -> None:
    off = engine_at(serve({**sglang_routes, "GET /server_info": {**info, "disable_radix_cache": True}})).identify()
    assert off.prefix_caching is False
    tiers = engine_at(
        serve({**sglang_routes, "GET /server_info": {**info, "enable_hierarchical_cache": True}})
    ).identify()
    assert (tiers.details["hicache_ratio"], tiers.details["hicache_write_policy"]) == ("2.0", "write_through")


def test_releases_of_2025_tell_it_under_the_old_path(serve: Serve, sglang_routes: Routes, info: dict[str, Any]) -> None:
    routes = {**sglang_routes, "GET /server_info": (404, {"detail": "Not Found"}), "GET /get_server_info": info}
    assert engine_at(serve(routes)).identify().capacity_tokens == 10240


def test_behind_a_gateway_the_rest_is_unknown_and_it_says_why(serve: Serve, sglang_routes: Routes) -> None:
    identity = engine_at(serve({**sglang_routes, "GET /server_info": (404, "no such route")})).identify()
    assert (identity.context_tokens, identity.capacity_tokens, identity.kv_dtype) == (4096, None, None)
    for name in ("version", "model_path", "capacity_tokens", "granularity_tokens", "slots", "prefix_caching"):
        assert "server_info answered 404 (no such route)" in identity.unknown[name]


def test_texts_and_chats_are_tokenised_by_the_server(serve: Serve, sglang_routes: Routes) -> None:
    engine = engine_at(serve(sglang_routes))
    assert engine.count_text("The cache prefix of the document.") == 7
    assert engine.count_chat(HELLO) == 18
    assert engine.chat_tokens(HELLO) == [1, 87, 85, 337, 201, 42, 75, 401, 2, 201, 1, 278, 85, 276, 86, 280, 86, 201]


def test_a_release_whose_tokenize_takes_no_chats_counts_them_by_usage(serve: Serve, sglang_routes: Routes) -> None:
    def tokenize(request: dict[str, Any]) -> Any:
        if b'"messages"' in request["body"]:
            return 400, {"object": "error", "message": "body.prompt: Field required"}
        return {"tokens": [1, 2], "count": 2}

    usage = {"choices": [], "usage": {"prompt_tokens": 18, "completion_tokens": 1}}
    engine = engine_at(serve({**sglang_routes, "POST /tokenize": tokenize, "POST /v1/chat/completions": usage}))
    assert (engine.count_text("a b"), engine.chat_tokens(HELLO), engine.count_chat(HELLO)) == (2, None, 18)
    identity = engine.identify()
    assert identity.tokenizer_fingerprint is not None
    assert "template_fingerprint" in identity.unknown


def test_a_request_has_its_length_forced_and_may_carry_a_salt_or_token_ids() -> None:
    engine = engine_at("http://h")
    payload = engine.ids_payload([5, 6], 2, cache_salt="a/b")
    assert (payload["prompt"], payload["ignore_eos"], payload["cache_salt"]) == ([5, 6], True, "a/b")
    with pytest.raises(ValueError, match="does not let a request choose its slot"):
        engine.chat_payload(HELLO, 1, slot=0)


# --- reset --------------------------------------------------------------------------------------------


def test_a_flush_empties_the_cache(serve: Serve, sglang_routes: Routes, fixtures: Path) -> None:
    done = (fixtures / "sglang" / "01-reset.body.txt").read_text()
    outcome = engine_at(serve({**sglang_routes, FLUSH: done})).reset_cache()
    assert (outcome.complete, outcome.message) == (True, "SGLang emptied its cache")


def test_a_busy_server_is_asked_again(
    serve: Serve, sglang_routes: Routes, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reset, "PAUSE_S", 0.01)
    busy = (400, (fixtures / "sglang" / "52-flush-while-busy.body.txt").read_text())
    answers: list[Any] = [busy, "Cache flushed."]
    assert engine_at(serve({**sglang_routes, FLUSH: lambda _: answers.pop(0)})).reset_cache().complete
    assert answers == []


def test_a_server_that_stays_busy_is_not_reset(
    serve: Serve, sglang_routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reset, "PATIENCE_S", 0.0)
    outcome = engine_at(serve({**sglang_routes, FLUSH: (400, "Flush cache failed.")})).reset_cache()
    assert not outcome.complete
    assert outcome.message.startswith("SGLang refused to empty its cache, as it does while requests run")


@pytest.mark.parametrize(
    ("flags", "complete", "told"),
    [
        ({"enable_hierarchical_cache": True}, True, "SGLang emptied its cache on device and host"),
        (
            {"enable_hierarchical_cache": True, "hicache_storage_backend": "file"},
            False,
            "the storage of its hierarchical cache (file) stays: POST /hicache/storage-backend/clear empties it",
        ),
        ({"enable_lmcache": True}, False, "what LMCache or FlexKV keeps outside of it stays"),
        ({"dp_size": 2}, False, "it answers for the first of its 2 data-parallel ranks alone"),
    ],
)
def test_a_flush_says_what_stays(
    serve: Serve, sglang_routes: Routes, info: dict[str, Any], flags: dict[str, Any], complete: bool, told: str
) -> None:
    outcome = engine_at(serve({**sglang_routes, FLUSH: "ok", "GET /server_info": {**info, **flags}})).reset_cache()
    assert outcome.complete is complete
    assert outcome.message.endswith(told)


def test_what_cannot_be_asked_about_a_flush_is_not_taken_as_done(serve: Serve, sglang_routes: Routes) -> None:
    outcome = engine_at(serve({**sglang_routes, FLUSH: "ok", "GET /server_info": (404, "no")})).reset_cache()
    assert not outcome.complete
    outcome = engine_at(serve({**sglang_routes, FLUSH: (404, "no")})).reset_cache()
    assert outcome.message == "nothing was emptied: what stands before SGLang does not let POST /flush_cache through"


def test_a_flush_that_needs_the_admin_key_is_told_as_such(serve: Serve, sglang_routes: Routes) -> None:
    with pytest.raises(TargetError, match="answered 401: the server wants an API key"):
        engine_at(serve({**sglang_routes, FLUSH: (401, {"error": "Unauthorized"})})).reset_cache()


# --- metrics ------------------------------------------------------------------------------------------


def test_metrics_are_on_the_page_from_the_start_or_from_their_first_event(fixtures: Path) -> None:
    first, last = (
        names_on(fixtures / "sglang" / f"{name}.body.txt") for name in ("02-metrics-before", "41-metrics-end")
    )
    for metric in SglangEngine.metrics:
        if not metric.absent_is_zero:
            assert metric.names[0] in first, metric
        elif metric.meaning != "preemptions":  # none happened on the recorded server
            assert metric.names[0] in last, metric
    assert "sglang:cached_tokens_total" not in first
    assert "sglang:evicted_tokens_total" not in first


def test_counters_rise_by_what_the_answers_reported(fixtures: Path) -> None:
    """Twelve chats lie between the two pages; the first has no series of cached tokens yet."""
    folder = fixtures / "sglang"
    usages = json.loads((folder / "03-06-usages.json").read_text())
    pages = folder / "02-metrics-before.body.txt", folder / "07-metrics-after.body.txt"
    for meaning, key in (
        ("prompt_tokens", "prompt_tokens"),
        ("cached_prompt_tokens", "cached_tokens"),
        ("generated_tokens", "completion_tokens"),
    ):
        assert change(SglangEngine.metrics, meaning, *pages) == sum(usage[key] for usage in usages)


def test_its_gauges_do_not_tell_whether_it_is_idle() -> None:
    engine: Engine = engine_at("http://h")
    assert engine.is_idle({"sglang:num_running_reqs": 0.0, "sglang:num_queue_reqs": 0.0}) is None
