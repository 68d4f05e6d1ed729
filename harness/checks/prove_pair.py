"""Two targets that differ in their cache, prefix by prefix."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict

from harness.checks.laboratory import Finding
from harness.checks.prove import Proof
from harness.checks.prove_evidence import LEAST_GAIN
from harness.checks.prove_plan import AGAIN, Name
from harness.checks.prove_statistics import WANTED, Interval, median_interval
from harness.checks.prove_verdict import NOT_SHOWN, SHOWN, UNKNOWN


def compare(on: Proof, off: Proof) -> Finding:
    """Whether a prefix that was sent before is served sooner by the first target than by the second.

    pays: it is, and the first one's cache is shown to work, the second one's is not; no-difference: it is not;
    unclear: it is, but not by the cache alone, or it cannot be told.
    """
    warm, cold = _ratio(on, off, AGAIN), _ratio(on, off, ("cold",))
    (of_on, of_off) = (proof.finding() for proof in (on, off))
    verdict, code, words = _judge(of_on, of_off, warm)
    numbers = {
        "warm": None if warm is None else asdict(warm),
        "cold": None if cold is None else asdict(cold),
        **{name: {"verdict": one.verdict, **one.numbers} for name, one in (("a", of_on), ("b", of_off))},
    }
    names = [proof.laboratory.target.name for proof in (on, off)]
    times = "" if warm is None else f" With a prefix that was sent before, the first token took {_words(warm)} times as"
    if warm is not None and cold is not None:
        times += f" long at {names[0]} as at {names[1]}; with a new one {_words(cold)} times."
    sides = f" {names[0]}: {of_on.verdict}; {names[1]}: {of_off.verdict}."
    return Finding(verdict, code, f"{words}{times}{sides}", numbers)


def _judge(on: Finding, off: Finding, warm: Interval | None) -> tuple[str, int, str]:
    if warm is None or warm.confidence < WANTED:
        return "unclear", UNKNOWN, "Could not tell: too few prefixes were measured at both."
    if warm.low > 1 and warm.median >= 1 / (1 - LEAST_GAIN):
        return "no-difference", NOT_SHOWN, "Not faster: the second target is; name the one with the cache first."
    if warm.median > 1 - LEAST_GAIN:
        return "no-difference", NOT_SHOWN, "No difference that matters."
    if warm.high >= 1:
        return "unclear", UNKNOWN, "Could not tell: the times differ too much from each other."
    if on.exit_code == SHOWN and off.exit_code == NOT_SHOWN:
        return "pays", SHOWN, "The cache pays."
    return "unclear", UNKNOWN, "The first target is faster, but not by its cache alone."


def _ratio(on: Proof, off: Proof, names: Sequence[Name]) -> Interval | None:
    """First target over second, over the prefixes that both were asked."""
    of_on, of_off = _times(on, names), _times(off, names)
    both = [number for number in of_on if number in of_off]
    return median_interval([of_on[number] / of_off[number] for number in both]) if both else None


def _times(proof: Proof, names: Sequence[Name]) -> dict[int, float]:
    """Prefix -> median time to the first token of its requests of these kinds, in ms."""
    times: dict[int, list[float]] = {}
    for one in proof.measures:
        if one.name in names and one.ttft_ms:
            times.setdefault(one.prefix, []).append(one.ttft_ms)
    return {prefix: statistics.median(of_prefix) for prefix, of_prefix in times.items()}


def _words(interval: Interval) -> str:
    return f"{interval.median:.2f} ({interval.low:.2f} to {interval.high:.2f})"
