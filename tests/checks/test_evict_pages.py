"""docs/evict.md and docs/isolate.md tell the same as the code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.checks import evict_finding, evict_measure, evict_search, isolate, isolate_evidence, sight

DOCS = Path(__file__).parents[2] / "docs"
EVICT, ISOLATE = (DOCS / "evict.md").read_text(), (DOCS / "isolate.md").read_text()


@pytest.mark.parametrize(
    ("page", "exit_codes"), [(EVICT, evict_finding.EXIT_CODES), (ISOLATE, isolate_evidence.EXIT_CODES)]
)
def test_every_verdict_has_its_row(page: str, exit_codes: Mapping[str, int]) -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d) \|", page, re.MULTILINE)
    assert {verdict: int(code) for verdict, code in rows} == {**exit_codes, "unanswered": 2, "restarted": 2}


def test_the_numbers_of_evict() -> None:
    assert sight.PAIRS == 3
    assert "**Three prompts, each twice in a row.**" in EVICT
    assert f"{evict_measure.MOST_PROMPTS} are tried at most" in EVICT
    assert f"to {evict_search.PRECISION * 100:.0f} %" in EVICT
    assert evict_measure.PARTS == 8
    assert "an eighth of the claim" in EVICT
    assert f"{evict_measure.USUAL_TOKENS:,} tokens; the server tells no limits" in EVICT
    assert f"{evict_measure.TIMES_TEMPLATE} times as long as the template" in EVICT
    assert f"more than {evict_finding.ALIKE * 100:.0f} % less than it claims" in EVICT
    assert f"{sight.SOONER:g} times sooner than a cold prompt" in EVICT


def test_the_numbers_of_isolate() -> None:
    assert isolate.ROUNDS == 3
    assert "Three rounds for each key" in ISOLATE
    assert f"a prefix ({isolate.USUAL_TOKENS:,} tokens" in ISOLATE
    assert f"{sight.SOONER:g} times sooner than the quickest `first`" in ISOLATE


def test_every_request_of_a_round_has_its_row() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (?:tenant ([abc])'s|none) \| (nothing|the prefix) \|", ISOLATE, re.MULTILINE)
    assert [(role, tenant or None) for role, tenant, _ in rows] == list(isolate.WITH_KEY)
    assert {role for role, _, hits in rows if hits == "the prefix"} == set(isolate_evidence.TOGETHER)
