"""`kvswarm prove` against llama.cpp's real server: its counts to the token, its times as they come."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.analysis import load
from harness.checks.laboratory import opened
from harness.checks.prove import Asked, Proof, prove
from harness.checks.prove_plan import COLD
from harness.embedded.server import RunningServer
from harness.engines.target import Target

Start = Callable[..., RunningServer]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """This server's counters are right as soon as it is idle."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.05)


def proof(server: RunningServer, folder: Path, prefix_tokens: int = 500, text: str | None = None) -> Proof:
    with opened("prove", Target(url=server.url), str(folder), {}) as laboratory:
        return prove([laboratory], Asked(None if text else prefix_tokens, text))[0]


def test_one_slot_that_keeps_one_prompt(llama_cpp_server: Start, tmp_path: Path) -> None:
    """Each request but the cold ones hits what it shares with the one before it, to the token."""
    found = proof(llama_cpp_server(slots=1, context_tokens=4096), tmp_path)
    finding = found.finding()
    assert (finding.verdict, finding.exit_code) == ("works", 0)
    for one in found.measures:
        assert one.usage_cached_tokens == one.counter_cached_tokens
        assert one.usage_cached_tokens is not None
        least = one.expected(1)
        assert least <= one.usage_cached_tokens <= (one.most_shared if one.name in COLD else least + 3)
    run = load(found.laboratory.folder)
    assert (run.manifest.state, run.problems) == ("complete", ())


def test_a_prefix_out_of_a_file(llama_cpp: RunningServer, tmp_path: Path) -> None:
    """Real text: lengths are what the server counts, and every prefix begins with words of its own."""
    text = " ".join(f"Rule {number}: answer in {number % 7 + 2} short sentences." for number in range(50))
    found = proof(llama_cpp, tmp_path, text=text)
    assert found.finding().verdict == "works"
    assert found.usage.hits == 15
    assert found.usage.contaminated == ()
