"""No verdict of prove, evict, isolate and persist is wrong: all manners, the cache on and off, every fault.

Here a choice; with KVSWARM_ALL_VERDICTS=1 all of them, which takes half an hour.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest

from harness.checks.isolate_evidence import EXIT_CODES as OF_ISOLATE
from harness.sim.faults import KINDS
from tests.checks.verdicts import CHECKS, MANNERS, Check, Subject, expected, faults, judged, running

ALL = os.environ.get("KVSWARM_ALL_VERDICTS") == "1"
CHOICE: dict[Subject, tuple[Check, ...]] = {
    Subject("vllm", True): CHECKS,
    Subject("vllm", False): CHECKS,
    Subject("sglang", True): CHECKS,
    Subject("sglang", False): CHECKS,
    Subject("llama-cpp", True): CHECKS,
    Subject("llama-cpp", False): CHECKS,
    Subject("mlx-lm", True): CHECKS,
    Subject("mlx-lm", False): CHECKS,
    Subject("mlx-lm", True, "loading"): ("prove",),
    Subject("llama-cpp", True, "unreachable"): CHECKS,
    Subject("llama-cpp", True, "restart"): ("prove", "evict", "persist"),
    Subject("mlx-lm", True, "restart"): ("evict",),
    Subject("vllm", True, "restart"): ("isolate",),
    Subject("sglang", True, "restart", by_header=True): ("evict",),
    Subject("llama-cpp", False, "stall"): ("isolate",),
    Subject("mlx-lm", True, "reset"): CHECKS,
    Subject("llama-cpp", True, "error-event"): ("isolate",),
    Subject("mlx-lm", True, "truncated-json", by_header=True): ("prove",),
    Subject("mlx-lm", False, "no-done"): ("prove",),
    Subject("llama-cpp", True, "no-usage"): ("prove", "persist"),
    Subject("mlx-lm", True, "no-usage"): ("evict", "isolate"),
    Subject("mlx-lm", False, "no-usage"): ("prove", "evict"),
    Subject("mlx-lm", True, "tokens-per-chunk"): ("isolate",),
    Subject("mlx-lm", False, "role-first", by_header=True): ("isolate",),
    Subject("mlx-lm", True, "no-role-first"): ("isolate",),
    Subject("llama-cpp", False, "429"): ("prove", "persist"),
    Subject("sglang", True, "503"): CHECKS,
    Subject("llama-cpp", True, "slow-metrics"): ("prove",),
    Subject("llama-cpp", False, "broken-metrics"): ("isolate",),
    Subject("mlx-lm", False, "clock-skew"): ("evict",),
}
OTHERWISE = ("restart", "loading", "unreachable")
"""Faults that are met otherwise by requests that ask for them than by an engine that is started with them."""
EVERY = [
    *(Subject(manner, caching, fault) for manner, caching, fault in product(MANNERS, (True, False), faults())),
    *(Subject(manner, caching, fault, True) for manner, caching, fault in product(MANNERS, (True, False), OTHERWISE)),
]


def chosen() -> list[tuple[Check, Subject]]:
    if ALL:
        return [(check, subject) for subject in EVERY for check in CHECKS]
    return [(check, subject) for subject, checks in CHOICE.items() for check in checks]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated engines' counters are right at once."""
    monkeypatch.setattr("harness.collector.pages.SETTLE_EVERY_S", 0.02)


class Engines:
    """One at a time: the tests that look at it follow each other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._current: Subject | None = None
        self._target = ""

    def target(self, subject: Subject) -> str:
        if subject != self._current:
            self.stop()
            self._target = self._stack.enter_context(running(subject, self._folder))
            self._current = subject
        return self._target

    def stop(self) -> None:
        self._current = None
        self._stack.close()


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    engines = Engines(tmp_path_factory.mktemp("engines"))
    yield engines
    engines.stop()


@pytest.mark.parametrize(("check", "subject"), chosen(), ids=str)
def test_verdict(
    check: Check, subject: Subject, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subject.fault == "slow-metrics":  # a page that takes 0.3 s stands for one that takes 5 s
        monkeypatch.setattr("harness.checks.counter.SLOW_S", 0.5)
    *found, sentence = judged(check, subject, engines.target(subject), tmp_path, monkeypatch)
    assert tuple(found) == expected(check, subject), sentence
    assert sentence.count("\n") == 0
    assert "Traceback" not in sentence


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text()
    rows = re.findall(r"^\| `?([a-z0-9-]+)`? \| (prove|evict|isolate|persist) \| (.*) \|$", page, re.MULTILINE)
    told = {
        (check, fault, manner, caching): word
        for fault, check, cells in rows
        for manner, both in zip(MANNERS, cells.split(" | "), strict=True)
        for caching, word in zip((True, False), both.split(" / "), strict=True)
    }
    for faults_alike, other in re.findall(r"^\| (`[^|]*`) \| `?([a-z0-9]+)`? \|$", page, re.MULTILINE):
        for fault in re.findall(r"`([^`]+)`", faults_alike):
            alike = {key: word for key, word in told.items() if key[1] == other}
            told |= {(check, fault, manner, caching): word for (check, _, manner, caching), word in alike.items()}
    assert told == {
        (check, fault, manner, caching): expected(check, Subject(manner, caching, fault))[0]
        for check, fault, manner, caching in product(CHECKS, faults(), MANNERS, (True, False))
    }


def test_the_table_has_every_fault() -> None:
    assert set(faults()) == {"none", *KINDS}


def test_the_choice_has_every_manner_every_fault_and_every_verdict() -> None:
    cases = [(check, subject) for subject, checks in CHOICE.items() for check in checks]
    assert {subject.manner for _, subject in cases} == set(MANNERS)
    assert {subject.fault for _, subject in cases} == set(faults())
    assert {(check, expected(check, subject)) for check, subject in cases} == {
        (check, expected(check, subject)) for check, subject in product(CHECKS, EVERY)
    }
    assert {expected("isolate", subject)[0] for subject in EVERY} >= set(OF_ISOLATE) - {"timing-differs"}
