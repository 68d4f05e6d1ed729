"""From what the requests of the check showed to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.checks import wording
from harness.checks.prediction import Observation, granularities, loses_a_block
from harness.engines.base import Need

Kind = Literal["works", "differs", "caching-off", "reporting-off", "template-drift", "unclear"]

SOONER, SOONER_THAN_HALF = 3.0, 1.5
"""By the clock alone a repeat was served from a cache if its first token came so many times sooner than that of the
cold prompt, and of the half-shared one: a server that is slow at its very first request is so at the cold one only."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of the target before any request."""

    granularity_tokens: int | None = None
    prefix_caching: bool | None = None
    replicas: int = 1
    """Servers behind the URL."""
    exact: bool = True
    """Prompts have the length that was planned."""
    advice: Mapping[Need, str] = field(default_factory=dict)
    """As in `harness.engines.base.Engine`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: Kind
    sentence: str
    granularity_tokens: int | None = None
    """Block or page size that the counts show; None: they do not tell it."""


def falls_short(repeat: Observation, granularity_tokens: int | None) -> bool:
    """Whether every count of an exact repeat is less than its length allows; False if there is no count."""
    if not repeat.counts:
        return False
    if granularity_tokens is not None:
        return max(repeat.counts) < repeat.bounds(granularity_tokens)[0]
    # Of an unknown block size: less than half of the prompt is explained by none.
    return 2 * max(repeat.counts) < repeat.length


def is_drift(cold: Observation, repeat: Observation) -> bool:
    """Whether two identical requests were counted as prompts of different length."""
    return None not in (cold.prompt_tokens, repeat.prompt_tokens) and cold.prompt_tokens != repeat.prompt_tokens


def needs_part(observed: Sequence[Observation]) -> bool:
    """Whether several block sizes explain the counts, so that a prompt that shares another length can tell."""
    return len(granularities(observed)) > 1


def judge(observed: Sequence[Observation], target: Circumstances) -> Verdict:
    """The verdict on cold, repeat and half, and on part, ids_cold and ids_repeat where they were sent."""
    by_name = {observation.name: observation for observation in observed}
    cold, repeat, half = by_name["cold"], by_name["repeat"], by_name["half"]
    if is_drift(cold, repeat):
        return Verdict("template-drift", wording.drift_of_length(cold, repeat))
    if not repeat.counts:
        return _by_the_clock(cold, repeat, half, target)
    told = target.granularity_tokens
    if told is not None and repeat.bounds(told)[1] == 0 == max(repeat.counts):
        return Verdict("unclear", wording.too_short(repeat, told))
    if falls_short(repeat, told):
        if target.replicas > 1:
            return Verdict("unclear", wording.another_replica(repeat, target.replicas))
        ids = by_name.get("ids_repeat")
        if ids is not None and ids.counts and not falls_short(ids, told):
            return Verdict("template-drift", wording.drift_of_text(repeat, ids))
        if not any(count for observation in observed for count in observation.counts):
            sentence = wording.caching_off(repeat, told, target.prefix_caching, target.advice, ids is not None)
            return Verdict("caching-off", sentence)
    return _by_the_rules(observed, target)


def _by_the_clock(cold: Observation, repeat: Observation, half: Observation, target: Circumstances) -> Verdict:
    """Nobody counts: a repeat that was served much sooner is a hint, and no more."""
    sooner, than_half = _ratio(cold, repeat), _ratio(half, repeat)
    if sooner is not None and than_half is not None and sooner >= SOONER and than_half >= SOONER_THAN_HALF:
        return Verdict("reporting-off", wording.sooner(sooner, target.advice))
    return Verdict("unclear", wording.no_evidence(sooner, target.advice))


def _ratio(slow: Observation, fast: Observation) -> float | None:
    return slow.ttft_ms / fast.ttft_ms if slow.ttft_ms and fast.ttft_ms else None


def _by_the_rules(observed: Sequence[Observation], target: Circumstances) -> Verdict:
    told = target.granularity_tokens
    found = granularities(observed)
    assumed = told if told is not None else next(iter(found), None)
    shown = found[0] if len(found) == 1 else None
    if assumed is not None and loses_a_block(observed, assumed):
        shown = None  # blocks of twice the size look the same
    repeat = next(one for one in observed if one.name == "repeat")
    lengths = [one for one in observed if target.exact and one.length != one.planned_tokens]
    misfits = [one for one in observed if assumed and not all(one.fits(count, assumed) for count in one.counts)]
    difference = ""
    if assumed is None or lengths or misfits:
        if target.replicas > 1:
            return Verdict("unclear", wording.another_replica(next(iter(misfits), repeat), target.replicas))
        difference = wording.differs(observed, assumed, told, found, lengths)
    if repeat.usage_cached_tokens is None:
        sentence = wording.reporting_off(observed, target.advice)
        return Verdict("reporting-off", f"{sentence} {difference}".rstrip(), shown)
    if difference:
        return Verdict("differs", difference, shown)
    return Verdict("works", wording.works(observed, told, found), shown)
