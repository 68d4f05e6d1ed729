"""`make demo`'s command: six real runs, three tables, and a verdict of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import load
from harness.analysis.summary import Summary, summarise
from harness.demo import SCENARIOS, what_is_wrong
from tests.e2e.conftest import ROOT


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """(results folder, the finished process) of a short demo."""
    results = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "harness.cli", "demo", "--results", str(results), "--seconds", "8"]
    return results, subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=ROOT)


def summaries(results: Path, scenario: str) -> tuple[Summary, Summary]:
    """(caching on, caching off)."""
    on, off = (next(results.glob(f"*-{scenario}-cache-{word}")) for word in ("on", "off"))
    return summarise(load(on).only_target()), summarise(load(off).only_target())


@pytest.mark.timing  # every turn of 1,200 tokens is computed by the CPU, and there must be time for some warm ones
@pytest.mark.timeout(400)
def test_the_demo_works_and_shows_what_it_should(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    results, done = demo
    assert done.returncode == 0, done.stdout + done.stderr
    for scenario in SCENARIOS:
        on, off = summaries(results, scenario)
        assert on.agreement.sentence() == off.agreement.sentence() == "exactly equal"
        assert on.counters.cached_tokens == on.hit_rate.cached_tokens
        assert on.hit_rate.cached_tokens
        assert off.hit_rate.cached_tokens == 0
        assert off.hit_rate.cached_unknown == 0
        assert scenario in done.stdout
    rows = load(next(results.glob("*-demo-agent-loop-cache-on"))).measured
    warm = rows[rows.warmth == "warm"]
    assert warm.cached_tokens.sum() / warm.prompt_tokens.sum() > 0.8
    (page,) = results.glob("*-demo.html")
    assert f"Open {page} in a browser" in done.stdout
    assert "The cache did not work: nothing of" in page.read_text()
    for word in ("caching", "counters", "What to type next", "make run", str(results)):
        assert word in done.stdout


@pytest.mark.timing
def test_the_demo_would_notice_what_is_wrong(demo: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    on, off = summaries(demo[0], "demo-agent-loop")
    assert list(what_is_wrong("x", on, off)) == []
    assert any("nothing was reused" in said for said in what_is_wrong("x", off, off))
    assert any("caching is off but" in said for said in what_is_wrong("x", on, on))
    unequal = replace(on.agreement, cached=replace(on.agreement.cached, difference=5))
    assert any("do not agree" in said for said in what_is_wrong("x", replace(on, agreement=unequal), off))
    lengths = replace(on.planned_lengths, exact=on.planned_lengths.exact - 1)
    assert any("other lengths" in said for said in what_is_wrong("x", replace(on, planned_lengths=lengths), off))
    failed = tuple(replace(group, failed=3) for group in on.groups)
    assert any("3 requests failed" in said for said in what_is_wrong("x", replace(on, groups=failed), off))
    assert any("no request was measured" in said for said in what_is_wrong("x", replace(on, groups=()), off))
