"""`kvswarm prove` on simulated engines of all four manners: no verdict is wrong, whatever they leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.checks.laboratory import opened
from harness.checks.prove import Asked, Proof, prove
from harness.embedded.server import running_server
from harness.engines.target import Target
from harness.sim.options import MannerName, SimOptions

MANNERS: tuple[MannerName, ...] = ("vllm", "sglang", "llama-cpp", "mlx-lm")


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated engines' counters are right at once."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.02)


def proof(
    folder: Path, options: dict[str, Any], target: dict[str, Any] | None = None, prefix_tokens: int = 1000
) -> Proof:
    sized = {"preset": "cpu", "time_scale": 10.0, "kv_tokens": 16384, "context_tokens": 4096, **options}
    with (
        running_server(SimOptions(**sized)) as server,
        opened("prove", Target(url=server.url, **(target or {})), str(folder), {}) as laboratory,
    ):
        return prove([laboratory], Asked(prefix_tokens))[0]


@pytest.mark.parametrize("manner", MANNERS)
def test_caching_on(manner: MannerName, tmp_path: Path) -> None:
    """Each request hits what the rules say, to the token."""
    found = proof(tmp_path, {"manner": manner})
    assert found.finding().verdict == "works"
    assert found.clock.state == "faster"
    assert found.usage.hits == found.usage.known == 15
    granularity = found.laboratory.identity.granularity_tokens
    for one in found.measures:
        assert one.usage_cached_tokens is not None
        most = max(one.expected(granularity), one.most_shared)
        assert one.expected(granularity) <= one.usage_cached_tokens <= most


@pytest.mark.parametrize("manner", MANNERS)
def test_caching_off(manner: MannerName, tmp_path: Path) -> None:
    finding = proof(tmp_path, {"manner": manner, "prefix_caching": False}).finding()
    assert (finding.verdict, finding.exit_code) == ("off", 1)


@pytest.mark.parametrize("manner", ["vllm", "sglang"])
def test_reporting_off_names_the_flag(manner: MannerName, tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": manner, "report_cached": False})
    flag = {"vllm": "--enable-prompt-tokens-details", "sglang": "--enable-cache-report"}[manner]
    assert found.finding().verdict == "reporting-off"
    assert flag in found.finding().sentence
    assert (found.usage.state, found.counter.state) == ("unknown", "hit")


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize(("caching", "verdict"), [(True, "reporting-off"), (False, "off")])
def test_neither_usage_nor_metrics(manner: MannerName, caching: bool, verdict: str, tmp_path: Path) -> None:
    """The clock alone is left."""
    options = {"manner": manner, "prefix_caching": caching, "faults": ("no-usage",), "time_scale": 5.0}
    found = proof(tmp_path, options, {"metrics_urls": ()})
    assert (found.usage.state, found.counter.state) == ("unknown", "unknown")
    assert found.finding().verdict == verdict


def test_metrics_that_cannot_be_read(tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": "llama-cpp", "metrics": False})
    assert (found.usage.state, found.counter.state, found.finding().verdict) == ("hit", "unknown", "works")


def test_times_that_scatter(tmp_path: Path) -> None:
    """Steps take 0.5 to 2 times as long, at random."""
    options = {"manner": "vllm", "jitter": 0.5}
    assert proof(tmp_path, options).finding().verdict == "works"
    assert proof(tmp_path, {**options, "prefix_caching": False}).finding().verdict == "off"


def test_a_prefix_that_costs_nothing(tmp_path: Path) -> None:
    """64 tokens take 1.5 ms of a step that takes 6.8, give or take half of it."""
    options = {"manner": "vllm", "preset": "h100-8b", "time_scale": 1.0, "kv_tokens": None, "jitter": 0.5}
    finding = proof(tmp_path, options, prefix_tokens=64).finding()
    assert (finding.verdict, finding.exit_code) == ("too-short", 2)
    assert "15 of 15 requests" in finding.sentence


def test_a_prefix_shorter_than_a_block(tmp_path: Path) -> None:
    finding = proof(tmp_path, {"manner": "sglang", "page_tokens": 2048, "step_tokens": 2048}).finding()
    assert (finding.verdict, finding.exit_code) == ("too-short", 2)
    assert "no whole block of 2048" in finding.sentence


def test_requests_that_are_refused_now_and_then(tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": "vllm", "faults": ("503:0@0.1",)})
    assert found.finding().verdict == "works"
    assert len({one.prefix for one in found.measures}) == 5
