"""`make demo-engines`'s command, with llama.cpp's server alone: the others are not on every machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import load
from harness.analysis.summary import summarise
from harness.demo_engines import demonstrate, servers_here, what_is_wrong
from harness.embedded.options import LlamaCppOptions


@pytest.mark.timeout(200)
def test_it_runs_each_engine_and_notices_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert demonstrate(str(tmp_path), 8, {"llama-cpp": LlamaCppOptions()}) == 0
    shown = capfd.readouterr().out
    for words in ("llama-cpp cold", "exactly equal", "engine llama-cpp: The cache works", "Not here yet: vllm"):
        assert words in shown
    (page,) = tmp_path.glob("*-demo-engines.html")
    assert f"Open {page} in a browser" in shown
    (run,) = tmp_path.glob("*-demo-engines-llama-cpp")
    summary = summarise(load(run).only_target())
    assert list(what_is_wrong("x", summary)) == []
    assert summary.check is not None
    broken = {
        "no request was measured": replace(summary, groups=()),
        "2 requests failed": replace(summary, groups=tuple(replace(group, failed=2) for group in summary.groups)),
        "did not find that the cache works": replace(summary, check=None),
        "do not agree": replace(
            summary, agreement=replace(summary.agreement, cached=replace(summary.agreement.cached, difference=1))
        ),
        "other lengths": replace(summary, planned_lengths=replace(summary.planned_lengths, exact=0)),
        "nothing was reused": replace(summary, hit_rate=replace(summary.hit_rate, cached_tokens=0)),
    }
    for words, other in broken.items():
        (sentence,) = what_is_wrong("x", other)
        assert words in sentence


def test_llama_cpp_is_always_here() -> None:
    assert next(iter(servers_here())) == "llama-cpp"
