"""kvswarm isolate at real and simulated servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.checks.evict import refuse_replicas
from harness.checks.examine import examine
from harness.checks.isolate import isolate
from harness.checks.laboratory import Finding
from harness.embedded.server import RunningServer, running_server
from harness.engines.target import Target
from harness.errors import InputError
from harness.sim.options import SimOptions


def found(url: str, folder: Path, prefix_tokens: int | None = None) -> Finding:
    return examine("isolate", url, "", None, str(folder), {}, lambda lab: isolate(lab, prefix_tokens), in_json=True)


def simulated(folder: Path, **options: Any) -> Finding:
    with running_server(SimOptions(time_scale=20.0, **options)) as server:
        return found(server.target, folder)


@pytest.mark.parametrize(("manner", "keys"), [("vllm", ["cache_salt"]), ("sglang", ["cache_salt", "extra_key"])])
def test_a_key_keeps_tenants_apart(manner: str, keys: list[str], tmp_path: Path) -> None:
    finding = simulated(tmp_path, manner=manner, page_tokens=16)
    assert (finding.verdict, finding.exit_code) == ("isolated", 0)
    for key in keys:
        assert finding.numbers[f"{key}_same_cached_tokens"] == 1024
        assert finding.numbers[f"{key}_other_cached_tokens"] == 0
        assert finding.numbers[f"{key}_none_cached_tokens"] < 16
        assert finding.numbers[f"{key}_none_again_cached_tokens"] == 1024
        assert finding.numbers[f"{key}_after_none_cached_tokens"] == 0
        assert f"{key} keeps tenants apart" in finding.sentence


def test_without_a_key_tenants_share_token_by_token(tmp_path: Path) -> None:
    finding = simulated(tmp_path, manner="mlx-lm")
    assert (finding.verdict, finding.exit_code) == ("shared", 1)
    assert finding.numbers["no_key_other_cached_tokens"] >= 1024
    assert "token by token" in finding.sentence


@pytest.mark.parametrize(
    ("cache_ram_mib", "words"),
    [(0, "With a slot each (id_slot) they are kept apart"), (64, "out of host memory (--cache-ram)")],
)
def test_slots_of_a_real_server_keep_apart_unless_host_memory_brings_together(
    cache_ram_mib: int, words: str, llama_cpp_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    server = llama_cpp_server(slots=2, context_tokens=1024, cache_ram_mib=cache_ram_mib)
    finding = found(server.target, tmp_path, prefix_tokens=256)
    assert finding.verdict == "shared"
    assert finding.numbers["no_key_other_cached_tokens"] >= 256
    assert words in finding.sentence


def test_a_length_that_the_target_does_not_take_is_refused(tmp_path: Path) -> None:
    with running_server(SimOptions(manner="vllm")) as server:
        for prefix_tokens, words in ((5, "needs at least"), (100_000, "and at most")):
            with pytest.raises(InputError, match=words):
                found(server.target, tmp_path, prefix_tokens)


def test_replicas_are_refused() -> None:
    pages = ("http://127.0.0.1:1/replicas/0/metrics", "http://127.0.0.1:1/replicas/1/metrics")
    with pytest.raises(InputError, match="2 replicas"):
        refuse_replicas(Target(url="http://127.0.0.1:1", metrics_urls=pages))
