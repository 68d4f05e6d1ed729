"""The verdict in words: what was seen, how sure it is, what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from harness.checks.prove_evidence import Clock, Counts
from harness.checks.prove_statistics import Interval
from harness.checks.prove_verdict import Evidence, Kind, Verdict
from harness.engines.base import Need


@dataclass(frozen=True, slots=True)
class Facts:
    """What the sentences tell."""

    evidence: Evidence
    usage: Counts
    counter: Counts
    clock: Clock
    prefix_tokens: int
    granularity_tokens: int | None
    advice: Mapping[Need, str]


def sentence(verdict: Verdict, facts: Facts) -> str:
    """The verdict, the evidence that it rests on, and the remedy."""
    opening = _OPENINGS[verdict.kind](verdict, facts)
    return f"{opening} {_remedy(verdict, facts)}".rstrip()


def _works(verdict: Verdict, facts: Facts) -> str:
    hits, times = _hits(facts), _times(facts.clock)
    if verdict.reason == "clock-unsure":
        return f"The cache works by the counts: {hits}. Whether that is faster the clock cannot tell: {times}."
    works = f"The cache works: {hits}, and {times}."
    if verdict.reason == "counter-wrong":
        works += " The engine's counter of cached tokens stood still: it counts something else, or another replica."
    return works


def _reporting_off(verdict: Verdict, facts: Facts) -> str:
    hits, times = _hits(facts), _times(facts.clock)
    if verdict.reason == "clock-alone":
        return (
            "The cache works by the clock alone, as neither the answers nor a counter say how much was cached: "
            f"{times}; {_chance(facts.clock)}."
        )
    wrong = "report none" if verdict.reason == "answers-wrong" else "do not report any"
    return f"The cache works by the engine's counter, but answers {wrong}: {hits}; {times}."


def _faster(verdict: Verdict, facts: Facts) -> str:
    times, chance = _times(facts.clock), _chance(facts.clock)
    if verdict.reason == "counted-none":
        return f"The clock and the counts disagree: {_hits(facts)}, but {times}; {chance}."
    return (
        f"Faster, and only the clock says so: {times}; {chance}. The control, the same prompt with another first "
        "token, was as slow as a cold one, as it is with a prefix cache."
    )


def _off(verdict: Verdict, facts: Facts) -> str:
    how = "by the clock alone, as nobody counts" if verdict.reason == "clock-alone" else _hits(facts)
    return f"The cache is off, or never hit: {how}; {_times(facts.clock)}."


def _never_hit(verdict: Verdict, facts: Facts) -> str:
    hits = _hits(facts)
    if verdict.reason == "ids-hit":
        return (
            f"The cache is on but chats never hit: {hits}, while token ids that were sent twice did. The chat "
            "template (or a proxy) puts in something that changes, such as a clock or a random id."
        )
    return f"The server says that its prefix cache is on, but nothing was hit: {hits}; {_times(facts.clock)}."


def _not_faster(verdict: Verdict, facts: Facts) -> str:
    control = " The control was as fast, so the first request of each prefix was slow for another reason."
    more = control if verdict.reason == "control-fast" else ""
    return f"Hit but not faster: {_hits(facts)}, yet {_times(facts.clock)}.{more}"


def _too_short(verdict: Verdict, facts: Facts) -> str:
    tokens = f"a prefix of {facts.prefix_tokens} tokens"
    if verdict.reason == "less-than-a-block":
        block = facts.granularity_tokens
        return f"Too short to matter: {tokens} has no whole block of {block}, so nothing of it can be hit."
    cost, noise = facts.clock.cost_ms, facts.clock.noise_ms
    cause = "it costs next to nothing"
    if cost is not None and noise is not None:
        cause = f"without a cache it costs {cost:.1f} ms, and times vary by {noise:.1f} ms"
    return f"Too short to matter: {_hits(facts)}, but {tokens} is too short for the clock: {cause}."


def _unclear(verdict: Verdict, facts: Facts) -> str:
    hits, times = _hits(facts), _times(facts.clock)
    if verdict.reason == "contaminated":
        names = ", ".join(dict.fromkeys((*facts.usage.contaminated, *facts.counter.contaminated)))
        return (
            f"Contaminated: prompts that nobody sent before ({names}) were counted as cached, so no hit proves "
            "anything: other clients use the server, or it counts something else as cached."
        )
    if verdict.reason == "control-fast":
        return (
            f"Unclear: {times}, but the control with another first token was as fast, of which nothing can be cached: "
            "the first request of each prefix was slow for another reason, or more is shared than a prefix."
        )
    if verdict.reason == "replicas":
        return (
            f"Unclear: {hits}, but each request may have gone to another of the {facts.evidence.replicas} replicas "
            "behind the URL than the one before."
        )
    if verdict.reason == "some-hit":
        return (
            f"Unclear: {hits}, and the others did not: prefixes are evicted at once, requests go to other replicas, or "
            "only whole prompts are reused, as models with sliding windows or recurrent layers force the engine to."
        )
    if verdict.reason == "sources-differ":
        return f"Unclear: the answers and the engine's counter disagree: {hits}; {times}."
    return f"Could not tell: nobody counts hits, and {times}."


_OPENINGS: Mapping[Kind, Callable[[Verdict, Facts], str]] = MappingProxyType(
    {
        "works": _works,
        "reporting-off": _reporting_off,
        "faster-without-evidence": _faster,
        "off": _off,
        "on-but-never-hit": _never_hit,
        "hit-not-faster": _not_faster,
        "too-short": _too_short,
        "unclear": _unclear,
    }
)


def _remedy(verdict: Verdict, facts: Facts) -> str:
    if verdict.kind == "reporting-off":
        return _do(facts, "cached_tokens", "")
    if verdict.kind == "off":
        return _do(facts, "caching", "Start the server with prefix caching on.")
    if verdict.reason in ("no-evidence", "clock-alone") and facts.evidence.can_report:
        return _do(facts, "cached_tokens", "")
    if verdict.kind == "too-short":
        return "Give a longer prefix: --prefix-tokens, --prefix-file."
    if verdict.reason == "replicas":
        return "Look at each replica by its own URL."
    return "Its log may tell why." if verdict.kind == "on-but-never-hit" and not verdict.reason else ""


def _do(facts: Facts, need: Need, otherwise: str) -> str:
    words = facts.advice.get(need)
    return f"{words[:1].upper()}{words[1:]}." if words else otherwise


def _hits(facts: Facts) -> str:
    """Such as "of 15 requests 15 hit, 29,700 of 30,000 tokens, by the answers and by the counter"."""
    usage, counter = facts.usage, facts.counter
    if usage.state == "unknown" and counter.state == "unknown":
        return "nobody counts hits"
    same = (usage.hits, usage.known, usage.cached_tokens) == (counter.hits, counter.known, counter.cached_tokens)
    if same:
        return f"{_of(usage)} by the answers and by the counter"
    told = [
        f"{_of(one)} by the {name}"
        for one, name in ((usage, "answers"), (counter, "counter"))
        if one.state != "unknown"
    ]
    return " and ".join(told)


def _of(counts: Counts) -> str:
    """Of the requests that sent a prefix again."""
    return (
        f"{counts.hits} of {counts.known} requests with a prefix that was sent before hit it "
        f"({counts.cached_tokens:,} tokens, {counts.expected_tokens:,} expected)"
    )


def _times(clock: Clock) -> str:
    if clock.to_cold is None:
        return "no first tokens were seen to compare times by"
    control = "" if clock.to_control is None else f", {clock.to_control.median:.2f} times that of the control"
    return f"the first token took {_interval(clock.to_cold)} times as long as cold{control}"


def _interval(interval: Interval) -> str:
    return (
        f"{interval.median:.2f} ({interval.low:.2f} to {interval.high:.2f} with {interval.confidence:.0%} confidence, "
        f"{interval.n} prefixes)"
    )


def _chance(clock: Clock) -> str:
    return f"by chance so many prefixes would be faster once in {1 / clock.chance:,.0f} times"
