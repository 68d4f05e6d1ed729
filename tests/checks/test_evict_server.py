"""kvswarm evict at real and simulated servers: what they were started with is what it finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.analysis import load
from harness.checks.evict import evict
from harness.checks.examine import examine
from harness.checks.laboratory import Finding
from harness.embedded.server import RunningServer, running_server
from harness.errors import InputError
from harness.sim.options import SimOptions


def found(url: str, folder: Path, seconds: float = 120, prompt_tokens: int | None = None) -> Finding:
    return examine(
        "evict", url, "", folder / "book", str(folder), {}, lambda lab: evict(lab, seconds, prompt_tokens), in_json=True
    )


def simulated(folder: Path, **options: Any) -> Finding:
    with running_server(SimOptions(time_scale=50.0, **options)) as server:
        return found(server.target, folder)


@pytest.mark.parametrize(("manner", "page_tokens"), [("vllm", 16), ("sglang", 64)])
def test_a_simulated_pool_is_as_claimed(manner: str, page_tokens: int, tmp_path: Path) -> None:
    options = {"manner": manner, "kv_tokens": 8192, "context_tokens": 2048, "page_tokens": page_tokens}
    finding = simulated(tmp_path, **options)
    assert (finding.verdict, finding.exit_code) == ("as-claimed", 0)
    assert finding.numbers["capacity_tokens"] == pytest.approx(8192, rel=0.05)
    assert finding.numbers["limited_in"] == "tokens"
    assert finding.numbers["order"] == "least-recently-used"
    assert finding.numbers["loses_its_end"] is (manner == "vllm")


@pytest.mark.parametrize("slots", [2, 4])
def test_simulated_slots_are_counted(slots: int, tmp_path: Path) -> None:
    finding = simulated(tmp_path, manner="llama-cpp", kv_tokens=slots * 1024, slots=slots)
    assert finding.verdict == "as-claimed"
    assert finding.numbers["prompts"] == slots
    assert finding.numbers["capacity_tokens"] == pytest.approx(slots * 1024, rel=0.05)


def test_without_counts_in_the_answers_the_counter_tells(tmp_path: Path) -> None:
    finding = simulated(tmp_path, manner="llama-cpp", kv_tokens=2048, slots=2, faults=("no-usage",))
    assert (finding.verdict, finding.numbers["evidence"]) == ("as-claimed", "counter")
    assert finding.numbers["capacity_tokens"] == pytest.approx(2048, rel=0.05)


@pytest.mark.parametrize("slots", [2, 4])
@pytest.mark.parametrize("cache_ram_mib", [0, 2])
def test_a_real_server_holds_what_its_slots_hold(
    slots: int, cache_ram_mib: int, llama_cpp_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    """2 MiB of host memory have room for short prompts, and for no long one."""
    server = llama_cpp_server(slots=slots, context_tokens=slots * 512, cache_ram_mib=cache_ram_mib)
    finding = found(server.target, tmp_path)
    assert finding.numbers["capacity_tokens"] == pytest.approx(slots * 512, rel=0.05)
    assert finding.numbers["order"] == "least-recently-used"
    if cache_ram_mib == 0:
        assert finding.verdict == "as-claimed"
        assert (finding.numbers["prompts"], finding.numbers["limited_in"]) == (slots, "prompts")
    elif slots == 2:
        assert (finding.verdict, finding.exit_code) == ("more", 0)
        assert finding.numbers["prompts"] > slots
        assert "came back from host memory" in finding.sentence
    else:
        assert finding.numbers["prompts"] >= slots


def test_each_request_is_a_row_and_the_verdict_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = simulated(tmp_path, manner="mlx-lm", entries=2)
    assert (finding.verdict, finding.numbers["prompts"], finding.numbers["limited_in"]) == ("found", 2, "prompts")
    line = json.loads((tmp_path / "book").read_text())
    shown = json.loads(capsys.readouterr().out)
    assert line["command"] == "evict"
    assert line["verdict"] == shown["verdict"] == finding.verdict
    run = load(shown["run"])
    assert run.manifest.state == "complete"
    assert len(run.requests) > finding.numbers["requests"]  # those that show what a hit looks like come on top
    assert set(run.requests["status"]) == {"ok"}


def test_a_length_that_the_target_does_not_take_is_refused(tmp_path: Path) -> None:
    with running_server(SimOptions(manner="vllm", kv_tokens=12_288, context_tokens=4096)) as server:
        for prompt_tokens, words in ((20, "give at least"), (100_000, "at most the context of 4096")):
            with pytest.raises(InputError, match=words):
                found(server.target, tmp_path, prompt_tokens=prompt_tokens)
