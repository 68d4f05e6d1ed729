"""Whether a saved cache comes back: on an engine as it should be, and on one without a cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checks.examine import examine
from harness.checks.laboratory import Finding
from harness.checks.persist import Wish, persist
from tests.contract.subject import Subject


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No verdict here rests on counters."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.05)


def found(subject: Subject, folder: Path) -> Finding:
    wish, url = Wish(prefix_tokens=256), subject.server.url
    return examine("persist", url, "", None, str(folder), {}, lambda lab: persist(lab, wish, None), True)


def test_slots_come_back_and_other_engines_say_what_they_have(subject: Subject, tmp_path: Path) -> None:
    for slot in range(subject.engine.identify().slots or 0):  # what other tests left
        subject.engine.control.post(f"{subject.target.server_root}/slots/{slot}?action=erase", {})
    finding = found(subject, tmp_path)
    if subject.name != "llama-cpp":
        assert (finding.verdict, finding.exit_code) == ("not-offered", 2)
        return
    assert (finding.verdict, finding.exit_code) == ("works", 0), finding.sentence
    prompt = finding.numbers["prompt_tokens"]
    assert finding.numbers["restored_cached_tokens"] == finding.numbers["warm_cached_tokens"] == prompt - 1
    assert finding.numbers["erased_cached_tokens"] == 0


def test_without_a_cache_nothing_comes_back(uncached: Subject, tmp_path: Path) -> None:
    finding = found(uncached, tmp_path)
    expected = ("no-hits", 1) if uncached.name == "llama-cpp" else ("not-offered", 2)
    assert (finding.verdict, finding.exit_code) == expected
