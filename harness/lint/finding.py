"""What breaks the prefix in a log: every finding with its place, its price, and what becomes of the whole log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.lint.arranging import Remedies
from harness.lint.excerpt import Excerpt
from harness.lint.kinds import KINDS, Kind
from harness.lint.likeness import likenesses
from harness.lint.moving import Mark
from harness.lint.pair import LEAST_TOKENS, Pair, Parting
from harness.lint.reading import Log, Request
from harness.lint.reuse import Cache, Served, Stream, served, shared_tokens
from harness.lint.segments import ChatPrompt
from harness.lint.tokens import Tokens
from harness.traces.request import Skipped


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference of one request from an earlier one."""

    kind: Kind
    request: int
    """Number of the request in the log, from 0."""
    earlier: int
    """Number of the request that it is compared to."""
    place: str
    """Tool, message or prompt in which they part."""
    message: int | None
    """Number of the message; None: it is a tool, or no chat."""
    character: int
    """In that place, from 0."""
    token: int
    """In the whole prompt, from 0."""
    lost_tokens: int
    """What stands behind it and would be reused without it (and without what else parts the two behind it)."""
    order: str
    """The rearranged order."""
    excerpts: tuple[Excerpt, Excerpt]
    """Earlier and later."""
    key: tuple[object, ...]
    """Findings with the same key are one problem."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The same finding in one request or many."""

    findings: Sequence[Finding]
    """In the order of the log."""

    @property
    def worst(self) -> Finding:
        return max(self.findings, key=lambda finding: finding.lost_tokens)

    @property
    def lost_tokens(self) -> int:
        return sum(finding.lost_tokens for finding in self.findings)


@dataclass(frozen=True, slots=True)
class OfKind:
    """What all findings of one kind come to."""

    kind: Kind
    requests: int
    lost_tokens: int
    alone: Served
    """If nothing but this kind is put right."""


@dataclass(frozen=True, slots=True)
class Lint:
    """Everything that was found."""

    name: str
    sources: Sequence[str]
    """What each request is called."""
    caches: int
    """Requests are of so many models and cache salts."""
    skipped: Skipped
    how: str
    """How tokens were counted."""
    cache: Cache
    now: Served
    after: Served
    """If all is put right."""
    kinds: Sequence[OfKind]
    """Worst first."""
    problems: Sequence[Problem]
    """Worst first."""
    remedies: Remedies


def lint(log: Log, tokens: Tokens, cache: Cache | None = None) -> Lint:
    """Compare every request to the earlier one that it is most like."""
    cache = cache or Cache()
    prompts = [request.prompt for request in log.requests]
    streams = streams_of(log.requests, prompts, tokens)
    remedies = Remedies(_likenesses(log.requests))
    least = max(LEAST_TOKENS, cache.block_tokens)
    findings: list[Finding] = []
    for number, shared in enumerate(shared_tokens(streams)):
        earlier = remedies.like[number]
        if earlier is None:
            continue
        pair = Pair(prompts[earlier], prompts[number], tokens)
        for part in pair.parts(shared, least):
            findings.append(_finding(part, number, earlier))
            remedies.add(number, part.step.kind, part.step.key)

    def rate(kinds: Sequence[Kind]) -> Served:
        return served(streams_of(log.requests, remedies.arrange(prompts, kinds), tokens), cache)

    now = served(streams, cache)
    found = [kind for kind in KINDS if any(finding.kind == kind for finding in findings)]
    after = rate(found) if found else now
    for kind in list(found):
        # What helps one prompt may cost others more: then the order that they have is the better one.
        without = rate([other for other in found if other != kind])
        if without.hit_tokens > after.hit_tokens:
            found.remove(kind)
            after = without
    findings = [finding for finding in findings if finding.kind in found]
    kinds = [_of_kind(kind, findings, rate((kind,))) for kind in found]
    return Lint(
        name=log.name,
        sources=[request.source for request in log.requests],
        caches=len({request.cache for request in log.requests}),
        skipped=log.skipped,
        how=tokens.how,
        cache=cache,
        now=now,
        after=after,
        kinds=sorted(kinds, key=lambda one: -one.lost_tokens),
        problems=_problems(findings),
        remedies=remedies,
    )


def _finding(part: Parting, number: int, earlier: int) -> Finding:
    segment, step = part.segment, part.step
    return Finding(
        kind=step.kind,
        request=number,
        earlier=earlier,
        place=segment.place,
        message=int(segment.path[1]) if segment.path[0] == "messages" else None,
        character=part.character,
        token=part.token,
        lost_tokens=part.lost_tokens,
        order=step.order,
        excerpts=part.excerpts,
        key=(step.kind, segment.owner, step.key if isinstance(step.key, Mark) else None),
    )


def streams_of(requests: Sequence[Request], prompts: Sequence[ChatPrompt], tokens: Tokens) -> list[Stream]:
    return [(request.cache, tokens.stream(prompt)) for request, prompt in zip(requests, prompts, strict=True)]


def _likenesses(requests: Sequence[Request]) -> list[int | None]:
    """As `likenesses`, among the requests of each cache."""
    of_cache: dict[tuple[str | None, ...], list[int]] = {}
    for number, request in enumerate(requests):
        of_cache.setdefault(request.cache, []).append(number)
    found: list[int | None] = [None] * len(requests)
    for numbers in of_cache.values():
        for number, like in zip(numbers, likenesses([requests[one].prompt for one in numbers]), strict=True):
            found[number] = None if like is None else numbers[like]
    return found


def _of_kind(kind: Kind, findings: Sequence[Finding], alone: Served) -> OfKind:
    lost: dict[int, int] = {}
    for finding in findings:
        if finding.kind == kind:
            lost[finding.request] = max(finding.lost_tokens, lost.get(finding.request, 0))
    return OfKind(kind, len(lost), sum(lost.values()), alone)


def _problems(findings: Sequence[Finding]) -> list[Problem]:
    by_key: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        by_key.setdefault(finding.key, []).append(finding)
    return sorted((Problem(group) for group in by_key.values()), key=lambda problem: -problem.lost_tokens)
