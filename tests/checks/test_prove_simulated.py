"""`kvswarm prove` on simulated engines of all four manners: no verdict is wrong, whatever they leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.checks.laboratory import opened
from harness.checks.prove import Asked, Proof, prove
from harness.checks.prove_runs import counted
from harness.embedded.server import running_server
from harness.engines.target import resolve_target
from harness.record.reader import open_run
from harness.sim.options import MannerName, SimOptions
from tests.checks.verdicts import restart_before


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated engines' counters are right at once."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.02)


def proof(
    folder: Path, options: dict[str, Any], target: dict[str, Any] | None = None, prefix_tokens: int = 600
) -> Proof:
    sized = {"preset": "cpu", "time_scale": 10.0, "kv_tokens": 16384, "context_tokens": 4096, **options}
    with running_server(SimOptions(**sized)) as server:
        whom = resolve_target(server.target).model_copy(update=target or {})
        with opened("prove", whom, str(folder), {}) as laboratory:
            return prove([laboratory], Asked(prefix_tokens, questions=2))[0]


@pytest.mark.parametrize("manner", ["sglang", "mlx-lm"])
def test_each_request_hits_what_the_rules_say_to_the_token(manner: MannerName, tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": manner})
    assert found.finding().verdict == "works"
    assert found.clock.state == "faster"
    assert found.usage.hits == found.usage.known == 10
    granularity = found.laboratory.identity.granularity_tokens
    for one in found.measures:
        assert one.usage_cached_tokens is not None
        most = max(one.expected(granularity), one.most_shared)
        assert one.expected(granularity) <= one.usage_cached_tokens <= most


def test_reporting_off_names_the_flag(tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": "sglang", "report_cached": False})
    assert found.finding().verdict == "reporting-off"
    assert "--enable-cache-report" in found.finding().sentence
    assert (found.usage.state, found.counter.state) == ("unknown", "hit")
    by_the_run = counted(open_run(found.laboratory.folder))
    assert by_the_run is not None
    assert by_the_run == sum(one.counter_cached_tokens or 0 for one in found.measures)


@pytest.mark.parametrize(("caching", "verdict"), [(True, "reporting-off"), (False, "off")])
def test_neither_usage_nor_metrics(caching: bool, verdict: str, tmp_path: Path) -> None:
    """The clock alone is left."""
    options = {"manner": "llama-cpp", "prefix_caching": caching, "faults": ("no-usage",), "time_scale": 5.0}
    found = proof(tmp_path, options, {"metrics_urls": ()})
    assert (found.usage.state, found.counter.state) == ("unknown", "unknown")
    assert found.finding().verdict == verdict


def test_metrics_that_cannot_be_read(tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": "llama-cpp", "metrics": False})
    assert (found.usage.state, found.counter.state, found.finding().verdict) == ("hit", "unknown", "works")
    assert any("counter is left out: " in note and "--metrics" in note for note in found.laboratory.notes)


@pytest.mark.parametrize(("caching", "verdict"), [(True, "works"), (False, "off")])
def test_times_that_scatter(caching: bool, verdict: str, tmp_path: Path) -> None:
    """Steps take 0.5 to 2 times as long, at random."""
    options = {"manner": "llama-cpp", "jitter": 0.5, "prefix_caching": caching}
    assert proof(tmp_path, options).finding().verdict == verdict


@pytest.mark.timing
def test_a_prefix_that_costs_nothing(tmp_path: Path) -> None:
    """64 tokens take 1.5 ms of a step that takes 6.8, give or take half of it."""
    options = {"manner": "vllm", "preset": "h100-8b", "time_scale": 1.0, "kv_tokens": None, "jitter": 0.5}
    finding = proof(tmp_path, options, prefix_tokens=64).finding()
    assert (finding.verdict, finding.exit_code) == ("too-short", 2)
    assert "10 of 10 requests" in finding.sentence


def test_a_prefix_shorter_than_a_block(tmp_path: Path) -> None:
    finding = proof(tmp_path, {"manner": "sglang", "page_tokens": 2048, "step_tokens": 2048}).finding()
    assert (finding.verdict, finding.exit_code) == ("too-short", 2)
    assert "no whole block of 2048" in finding.sentence


def test_requests_that_are_refused_now_and_then(tmp_path: Path) -> None:
    found = proof(tmp_path, {"manner": "llama-cpp", "faults": ("503:0@0.1",)})
    assert found.finding().verdict == "works"
    assert len({one.prefix for one in found.measures}) == 5


def test_without_caching_no_choice_of_replicas_explains_that_nothing_is_hit(tmp_path: Path) -> None:
    """Of three requests with one prefix, two at least went to the same one of two replicas."""
    found = proof(tmp_path, {"manner": "llama-cpp", "replicas": 2, "prefix_caching": False})
    assert found.evidence.replicas == 2
    assert (found.finding().verdict, found.finding().exit_code) == ("off", 1)


def test_a_restart_in_between_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restart_before(20, monkeypatch)
    finding = proof(tmp_path, {"manner": "llama-cpp"}).finding()
    assert finding.verdict == "works"
    assert "was restarted during the run" in finding.sentence
