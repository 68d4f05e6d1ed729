"""The gates of a comparison as JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from harness.compare.gates import Judged, State
from harness.exchange.junit import Case, Outcome, junit

OUTCOMES: Mapping[State, Outcome] = {
    "passed": "passed",
    "failed": "failure",
    "undecided": "skipped",
    "unknown": "error",
}
"""What a gate came to -> how JUnit calls it; an undecided one is a failure where gates are strict."""


def as_junit(gates: Sequence[Judged], at: datetime, *, strict: bool) -> str:
    """`at`: when they were judged. What `fails` counts as failed is a failure or an error here."""
    outcomes = {**OUTCOMES, "undecided": "failure"} if strict else OUTCOMES
    cases = [Case(f"{gate.side} against A", gate.gate, outcomes[gate.state], gate.sentence) for gate in gates]
    return junit("kvswarm compare", cases, at)
