"""Emptying vLLM's cache, and what it may leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.engines import reset
from harness.engines.target import Target
from harness.engines.vllm import VllmEngine
from harness.errors import TargetError
from tests.engines.metrics_pages import config_page
from tests.engines.scripted_server import Routes, Serve


def engine_at(root: str, **keys: Any) -> VllmEngine:
    return VllmEngine(Target(url=root, **keys), "tiny")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reset, "PATIENCE_S", 0.1)
    monkeypatch.setattr(reset, "PAUSE_S", 0.03)


def test_a_reset_that_succeeds_is_complete(serve: Serve, vllm_routes: Routes, fixtures: Path) -> None:
    done = (fixtures / "vllm" / "01-reset.body.json").read_text()
    outcome = engine_at(serve({**vllm_routes, "POST /reset_prefix_cache": done})).reset_cache()
    assert (outcome.complete, outcome.message) == (True, "vLLM emptied its prefix cache")


def test_a_refusal_is_met_with_patience(
    serve: Serve, vllm_routes: Routes, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reset, "PAUSE_S", 0.01)
    busy = (fixtures / "vllm" / "52-reset-while-busy.body.json").read_text()
    answers = [busy, busy, {"success": True}]
    root = serve({**vllm_routes, "POST /reset_prefix_cache": lambda _: answers.pop(0)})
    assert engine_at(root).reset_cache().complete
    assert answers == []


@pytest.mark.usefixtures("impatient")
def test_a_server_that_stays_busy_is_not_reset(serve: Serve, vllm_routes: Routes) -> None:
    outcome = engine_at(serve({**vllm_routes, "POST /reset_prefix_cache": {"success": False}})).reset_cache()
    assert not outcome.complete
    assert outcome.message.startswith("vLLM refused to empty its prefix cache, as it does while requests run")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, {"detail": "Not Found"}), "nothing was emptied: start vLLM with VLLM_SERVER_DEV_MODE=1"),
        ((200, ""), "releases before 0.26 do not say whether they did"),
    ],
)
def test_a_reset_that_is_not_sure_is_not_complete(serve: Serve, vllm_routes: Routes, answer: Any, told: str) -> None:
    outcome = engine_at(serve({**vllm_routes, "POST /reset_prefix_cache": answer})).reset_cache()
    assert not outcome.complete
    assert told in outcome.message


@pytest.mark.parametrize(
    "metrics",
    [
        config_page('block_size="16",kv_offloading_size="8.0"'),
        "# TYPE vllm:external_prefix_cache_queries counter\nvllm:external_prefix_cache_queries_total 512.0\n",
    ],
)
def test_an_external_tier_is_asked_too_and_not_trusted(serve: Serve, vllm_routes: Routes, metrics: str) -> None:
    routes = {"POST /reset_prefix_cache?reset_external=true": {"success": True}}
    outcome = engine_at(serve({**vllm_routes, **routes, "GET /metrics": metrics})).reset_cache()
    assert not outcome.complete
    assert "asked its KV connector to empty its own; not every connector does" in outcome.message


def test_a_tier_that_nobody_can_see_is_not_ruled_out(serve: Serve, vllm_routes: Routes) -> None:
    routes = {**vllm_routes, "POST /reset_prefix_cache": {"success": True}}
    outcome = engine_at(serve(routes), metrics_urls="none").reset_cache()
    assert not outcome.complete
    assert outcome.message.endswith("is not known, as the target has metrics_urls: none")


def test_behind_a_load_balancer_a_reset_is_not_complete(serve: Serve, vllm_routes: Routes) -> None:
    root = serve({**vllm_routes, "POST /reset_prefix_cache": {"success": True}})
    outcome = engine_at(root, metrics_urls=[f"{root}/metrics", "http://127.0.0.1:9/metrics"]).reset_cache()
    assert not outcome.complete
    assert "in one of 2 replicas only" in outcome.message


def test_a_reset_that_breaks_is_told_in_the_engines_words(serve: Serve, vllm_routes: Routes) -> None:
    routes = {"POST /reset_prefix_cache": (500, {"error": {"message": "engine is dead"}})}
    with pytest.raises(TargetError, match=r"could not be emptied: POST .* answered 500 \(engine is dead\)"):
        engine_at(serve({**vllm_routes, **routes})).reset_cache()
