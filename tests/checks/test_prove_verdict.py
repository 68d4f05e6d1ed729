"""Every combination of what the three kinds of evidence can say, and the verdict on it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from harness.checks.prove_evidence import Counted, Timed
from harness.checks.prove_verdict import EXIT_CODES, Evidence, Kind, judge

CLOCKS: tuple[Timed, ...] = ("faster", "not-faster", "control-fast", "too-short", "unsure")
TABLE = """
hit     hit     | works    hit-not-faster hit-not-faster too-short works
hit     unknown | works    hit-not-faster hit-not-faster too-short works
hit     none    | works    unclear        unclear        unclear   unclear
hit     some    | unclear  unclear        unclear        unclear   unclear
none    none    | faster-without-evidence/2 off off off off
none    unknown | faster-without-evidence/2 off off off off
none    hit     | reporting-off unclear   unclear        unclear   unclear
none    some    | unclear  unclear        unclear        unclear   unclear
unknown hit     | reporting-off hit-not-faster hit-not-faster reporting-off reporting-off
unknown none    | faster-without-evidence/2 off off off off
unknown unknown | faster-without-evidence/0 off unclear too-short unclear
unknown some    | unclear  unclear        unclear        unclear   unclear
some    hit     | unclear  unclear        unclear        unclear   unclear
some    none    | unclear  unclear        unclear        unclear   unclear
some    unknown | unclear  unclear        unclear        unclear   unclear
some    some    | unclear  unclear        unclear        unclear   unclear
"""
"""By the answers, by the counter | by each state of the clock, in the order of CLOCKS."""


def rows() -> list[tuple[Counted, Counted, Timed, str]]:
    found = []
    for line in TABLE.strip().splitlines():
        counted, verdicts = line.split("|")
        usage, counter = counted.split()
        found += [(usage, counter, clock, word) for clock, word in zip(CLOCKS, verdicts.split(), strict=True)]
    return found  # type: ignore[return-value]


def test_the_table_has_every_combination() -> None:
    states = get_args(Counted)
    assert {row[:3] for row in rows()} == set(product(states, states, get_args(Timed)))


@pytest.mark.parametrize(("usage", "counter", "clock", "word"), rows())
def test_verdict(usage: Counted, counter: Counted, clock: Timed, word: str) -> None:
    kind, _, code = word.partition("/")
    verdict = judge(Evidence(usage, counter, clock))
    assert verdict.kind == kind
    assert verdict.exit_code == (int(code) if code else EXIT_CODES[verdict.kind])


@pytest.mark.parametrize(("usage", "counter", "clock"), [row[:3] for row in rows()])
def test_what_nobody_sent_before_and_was_hit_makes_everything_unclear(
    usage: Counted, counter: Counted, clock: Timed
) -> None:
    verdict = judge(Evidence(usage, counter, clock, is_contaminated=True))
    assert (verdict.kind, verdict.reason, verdict.exit_code) == ("unclear", "contaminated", 2)


NONE = Evidence("none", "none", "not-faster")
ALONE = Evidence("unknown", "unknown", "faster")


@pytest.mark.parametrize(
    ("evidence", "kind", "code"),
    [
        (replace(NONE, told_on=True), "on-but-never-hit", 1),
        (replace(NONE, told_on=False), "off", 1),
        (replace(NONE, ids_hit=True), "on-but-never-hit", 1),
        (replace(NONE, ids_hit=False), "off", 1),
        (replace(NONE, replicas=2, told_on=True), "unclear", 2),
        (replace(NONE, replicas=2, told_on=False), "off", 1),
        (replace(NONE, replicas=2, one_prefix=2), "unclear", 2),
        (replace(NONE, replicas=2, one_prefix=3), "off", 1),  # two of three went to the same one of two
        (replace(NONE, replicas=2, one_prefix=3, told_on=True), "on-but-never-hit", 1),
        (replace(NONE, replicas=4, one_prefix=4), "unclear", 2),
        (replace(NONE, fits_block=False), "too-short", 2),
        (replace(ALONE, can_report=True), "reporting-off", 0),
        (replace(ALONE, clock="not-faster", told_on=True), "on-but-never-hit", 1),
        (replace(ALONE, clock="not-faster", replicas=3), "unclear", 2),
        (Evidence("hit", "hit", "faster", fits_block=False), "works", 0),
    ],
)
def test_what_is_known_of_the_target_counts(evidence: Evidence, kind: Kind, code: int) -> None:
    verdict = judge(evidence)
    assert (verdict.kind, verdict.exit_code) == (kind, code)


def test_every_verdict_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(get_args(Kind))
    assert set(EXIT_CODES.values()) == {0, 1, 2}
