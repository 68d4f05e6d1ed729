"""Every fault of the labelled prompts is found, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.lint.kinds import KINDS
from tests.lint.labelled_faults import FAULTS
from tests.lint.labelled_harmless import HARMLESS
from tests.lint.labelled_later import LATER
from tests.lint.logs import kinds_of, lint_of

LABELLED = {**FAULTS, **{name: (set[str](), requests) for name, requests in HARMLESS.items()}}


@pytest.mark.parametrize("name", [*LABELLED, *LATER])
def test_the_right_kinds_are_named(name: str, tmp_path: Path) -> None:
    expected, requests = {**LABELLED, **LATER}[name]
    assert kinds_of(lint_of(tmp_path, requests)) == expected


def test_precision_and_recall(tmp_path: Path) -> None:
    right = named = there = 0
    for expected, requests in LABELLED.values():
        found = kinds_of(lint_of(tmp_path, requests))
        right += len(found & expected)
        named += len(found)
        there += len(expected)
    assert (right / named, right / there) == (1.0, 1.0)


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_put_right_is_reused(name: str, tmp_path: Path) -> None:
    found = lint_of(tmp_path, FAULTS[name][1])
    worst = found.problems[0].worst
    assert found.after.hit_tokens > found.now.hit_tokens
    assert found.after.hit_tokens - found.now.hit_tokens >= 0.8 * worst.lost_tokens


def test_the_set_is_large_and_has_every_kind() -> None:
    assert len(LABELLED) >= 60
    assert len(HARMLESS) >= 30
    assert len(LATER) >= 20
    assert set().union(*(kinds for kinds, _ in FAULTS.values())) == set(KINDS)
