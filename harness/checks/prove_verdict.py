"""From three kinds of evidence to a verdict: a pure function of what each of them says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from harness.checks.prove_evidence import Counted, Timed

Kind = Literal[
    "works",
    "off",
    "on-but-never-hit",
    "hit-not-faster",
    "faster-without-evidence",
    "too-short",
    "reporting-off",
    "unclear",
]
Reason = Literal[
    "",
    "contaminated",
    "control-fast",
    "replicas",
    "some-hit",
    "sources-differ",
    "counted-none",
    "counter-alone",
    "answers-wrong",
    "counter-wrong",
    "clock-alone",
    "clock-unsure",
    "no-evidence",
    "less-than-a-block",
    "ids-hit",
]
"""What made the verdict this one, where its kind does not say it."""

SHOWN, NOT_SHOWN, UNKNOWN = 0, 1, 2
"""Exit codes."""
EXIT_CODES: Mapping[Kind, int] = MappingProxyType(
    {
        "works": SHOWN,
        "reporting-off": SHOWN,
        "faster-without-evidence": SHOWN,
        "off": NOT_SHOWN,
        "on-but-never-hit": NOT_SHOWN,
        "hit-not-faster": NOT_SHOWN,
        "too-short": UNKNOWN,
        "unclear": UNKNOWN,
    }
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What each kind says, and what is known of the target."""

    usage: Counted
    counter: Counted
    clock: Timed
    is_contaminated: bool = False
    """By a count, what nobody sent before was hit."""
    ids_hit: bool | None = None
    """Whether a prompt of token ids, sent twice, was hit; None: not tried."""
    told_on: bool | None = None
    """Whether the engine says that its prefix cache is on; None: it does not say."""
    can_report: bool = False
    """There is a known way to make its answers report cached tokens."""
    replicas: int = 1
    one_prefix: int = 1
    """Requests of one prefix that must hit it, and the one before them: of more than there are replicas, two meet."""
    fits_block: bool = True
    """The prefix is long enough for one block of the cache."""


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: Kind
    reason: Reason = ""

    @property
    def exit_code(self) -> int:
        """0: shown; 1: not shown; 2: could not tell."""
        # Counts that say "none" where the clock says "faster" leave open which of them is right.
        return UNKNOWN if self.reason == "counted-none" else EXIT_CODES[self.kind]


def judge(evidence: Evidence) -> Verdict:
    """Counts come first, as they are direct; the clock confirms them, contradicts them, or stands in for them."""
    if evidence.is_contaminated:
        return Verdict("unclear", "contaminated")
    states = {evidence.usage, evidence.counter}
    if not evidence.fits_block and not states & {"hit", "some"}:
        return Verdict("too-short", "less-than-a-block")
    if states == {"hit", "none"}:
        return _sources_differ(evidence)
    if "some" in states:
        return Verdict("unclear", "replicas" if evidence.replicas > 1 else "some-hit")
    if "hit" in states:
        return _hit(evidence)
    return _none(evidence) if "none" in states else _uncounted(evidence)


def _sources_differ(evidence: Evidence) -> Verdict:
    """One source counts hits, the other none: where the clock is for the hits, the other source is wrong."""
    if evidence.clock != "faster":
        return Verdict("unclear", "sources-differ")
    return Verdict("works", "counter-wrong") if evidence.usage == "hit" else Verdict("reporting-off", "answers-wrong")


def _hit(evidence: Evidence) -> Verdict:
    if evidence.clock in ("not-faster", "control-fast"):
        return Verdict("hit-not-faster", "control-fast" if evidence.clock == "control-fast" else "")
    if evidence.usage == "unknown":
        return Verdict("reporting-off", "counter-alone")
    if evidence.clock == "too-short":
        return Verdict("too-short")
    return Verdict("works", "clock-unsure" if evidence.clock == "unsure" else "")


def _none(evidence: Evidence) -> Verdict:
    if evidence.clock == "faster":
        return Verdict("faster-without-evidence", "counted-none")
    if evidence.replicas >= max(2, evidence.one_prefix) and evidence.told_on is not False:
        return Verdict("unclear", "replicas")
    if evidence.ids_hit:
        return Verdict("on-but-never-hit", "ids-hit")
    return Verdict("on-but-never-hit" if evidence.told_on else "off")


def _uncounted(evidence: Evidence) -> Verdict:
    """Nobody counts: the clock alone."""
    if evidence.clock == "faster":
        return Verdict("reporting-off" if evidence.can_report else "faster-without-evidence", "clock-alone")
    if evidence.clock == "too-short":
        return Verdict("too-short", "clock-alone")
    if evidence.clock == "not-faster":
        if evidence.replicas > 1 and evidence.told_on is not False:
            return Verdict("unclear", "replicas")
        return Verdict("on-but-never-hit" if evidence.told_on else "off", "clock-alone")
    return Verdict("unclear", "control-fast" if evidence.clock == "control-fast" else "no-evidence")
