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
    verdict, code, words = judge_pair(of_on.exit_code, of_off.exit_code, warm)
    numbers = {
        "warm": None if warm is None else asdict(warm),
        "cold": None if cold is None else asdict(cold),
        **{name: {"verdict": one.verdict, **one.numbers} for name, one in (("a", of_on), ("b", of_off))},
    }
    names = [proof.laboratory.target.name for proof in (on, off)]
    sides = f" {names[0]}: {of_on.verdict}; {names[1]}: {of_off.verdict}."
    return Finding(verdict, code, f"{words}{times_words(warm, cold, names)}{sides}", numbers)


def judge_pair(on_code: int, off_code: int, warm: Interval | None) -> tuple[str, int, str]:
    """(verdict, exit code, words) from the exit codes of either side and what a warm request took at the first one,
    in times of the second one."""
    if warm is None or warm.confidence < WANTED:
        return "unclear", UNKNOWN, "Could not tell: too few prefixes were measured at both."
    if warm.low > 1 and warm.median >= 1 / (1 - LEAST_GAIN):
        return "no-difference", NOT_SHOWN, "Not faster: the second one is; name the one with the cache first."
    if warm.median > 1 - LEAST_GAIN:
        return "no-difference", NOT_SHOWN, "No difference that matters."
    if warm.high >= 1:
        return "unclear", UNKNOWN, "Could not tell: the times differ too much from each other."
    if on_code == SHOWN and off_code == NOT_SHOWN:
        return "pays", SHOWN, "The cache pays."
    return "unclear", UNKNOWN, "The first one is faster, but not by its cache alone."


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


def times_words(warm: Interval | None, cold: Interval | None, names: Sequence[str]) -> str:
    """What requests took at the first target, in times of the second one: a sentence after a space, or nothing."""
    if warm is None:
        return ""
    new = "" if cold is None else f"; with a new one {_words(cold)} times"
    return (
        f" With a prefix that was sent before, the first token took {_words(warm)} times as long at {names[0]} as at "
        f"{names[1]}{new}."
    )


def _words(interval: Interval) -> str:
    return f"{interval.median:.2f} ({interval.low:.2f} to {interval.high:.2f})"
