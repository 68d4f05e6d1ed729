"""What prove and isolate say of every engine with its cache on, and of one with it off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from harness.checks.examine import examine
from harness.checks.isolate import isolate
from harness.checks.laboratory import Finding, Laboratory
from harness.checks.prove import Asked, prove
from harness.sim.options import SimOptions
from tests.contract.subject import Subject

PREFIX_TOKENS, SIMULATED_TOKENS = 768, 256
"""Of a prefix: a real engine on a busy machine needs more to show what a hit saves."""
BOUNDARY: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"vllm": ("isolated", 0), "sglang": ("isolated", 0), "llama-cpp": ("shared", 1), "mlx-lm": ("shared", 1)}
)


@pytest.fixture(autouse=True)
def patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of llama.cpp and of simulated engines are right as soon as they are idle."""
    subject = request.getfixturevalue("uncached" if "uncached" in request.fixturenames else "subject")
    if subject.name == "llama-cpp" or isinstance(subject.options, SimOptions):
        monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.05)


def found(command: str, subject: Subject, folder: Path) -> Finding:
    tokens = SIMULATED_TOKENS if isinstance(subject.options, SimOptions) else PREFIX_TOKENS
    checks: Mapping[str, Callable[[Laboratory], Finding]] = {
        "prove": lambda laboratory: prove([laboratory], Asked(tokens, questions=2))[0].finding(),
        "isolate": lambda laboratory: isolate(laboratory, tokens),
    }
    return examine(command, subject.server.target, "", None, str(folder), {}, checks[command], in_json=True)


def test_a_cache_that_is_on_works(subject: Subject, tmp_path: Path) -> None:
    finding = found("prove", subject, tmp_path)
    assert (finding.verdict, finding.exit_code) == ("works", 0), finding.sentence
    assert finding.numbers["usage"]["hits"] == 10
    assert finding.numbers["counter"]["hits"] == (10 if subject.has_counters else 0)


def test_tenants_are_kept_apart_where_there_is_a_key(subject: Subject, tmp_path: Path) -> None:
    finding = found("isolate", subject, tmp_path)
    assert (finding.verdict, finding.exit_code) == BOUNDARY[subject.name], finding.sentence


def test_a_cache_that_is_off_is_called_off(uncached: Subject, tmp_path: Path) -> None:
    finding = found("prove", uncached, tmp_path)
    assert (finding.verdict, finding.exit_code) == ("off", 1), finding.sentence
    assert finding.numbers["ids_hit"] is (False if uncached.engine.takes_token_ids else None)


def test_without_a_cache_nothing_is_said_of_tenants(uncached: Subject, tmp_path: Path) -> None:
    finding = found("isolate", uncached, tmp_path)
    assert (finding.verdict, finding.exit_code) == ("unclear", 2), finding.sentence
