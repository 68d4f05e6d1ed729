"""Cached tokens of each request of a log under one restriction after the other, down to the cache as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from harness.analysis.expected_endless import Endless, Rules
from harness.analysis.expected_engines import EngineCache
from harness.analysis.expected_slots import Sight, WatchedSlots
from harness.analysis.request_log import LoggedRequest
from harness.cache.base import Admission, Admitted, CacheModel

A = TypeVar("A", bound=Admission)

_Moment = Literal["first", "end", "sent"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """Cached tokens, one number for each request; each list has one restriction more than the one before."""

    shareable: list[int]
    """In a cache without end, exact to the token, that knows a request as soon as it was sent."""
    in_blocks: list[int]
    """In whole blocks or pages, and without what the engine always computes again."""
    computed: list[int]
    """Only what had been computed when the request was looked up."""
    kept: list[int] | None
    """Only what was still there; None: the room is not known."""
    found: list[int] | None
    """Only what the request could use where it was sent to."""


def expect(log: Sequence[LoggedRequest], cache: EngineCache) -> Expectation:
    """`log` is in the order in which requests were sent; the cache is empty before the first one."""
    exact = Rules(keeps_last_output_token=True)
    shareable = _known_at_once(log, Endless(exact), lambda known, request: known.shared_tokens(request.prompt))
    in_blocks = _known_at_once(
        log, Endless(cache.rules), lambda known, request: known.cached_tokens(request.prompt, request.prompt_tokens)
    )
    model = None if cache.model is None or cache.is_off else cache.model()
    if isinstance(model, WatchedSlots):
        found = replay(log, lambda request: model.admit(request.prompt, slot=request.slot), model)
        # One that never gets a slot was overtaken, in the log, by the end of those before it.
        sights = [model.sights.get(admission, Sight(0, 0)) for admission in found]
        anywhere, any_slot = [sight.anywhere for sight in sights], [sight.any_slot for sight in sights]
        return Expectation(shareable, in_blocks, anywhere, any_slot, _cached(found))
    endless = _replay(log, Endless(cache.rules))
    if cache.is_off:
        kept: list[int] | None = [0] * len(log)
    else:
        kept = None if model is None else _cached(_replay(log, model))
    return Expectation(shareable, in_blocks, _cached(endless), kept, kept)


def replay(log: Sequence[LoggedRequest], admit: Callable[[LoggedRequest], A], model: Admitted[A]) -> list[A]:
    """Let each request come in when it was sent, be computed at its first token, and end when it ended."""
    admissions: list[A] = []
    for moment, number in _events(log):
        request = log[number]
        if moment == "sent":
            admissions.append(admit(request))  # the log is in this order, so this is number `number`
        elif moment == "first":
            model.prefilled(admissions[number])
        elif request.complete:
            model.finish(admissions[number], request.output)
        else:
            model.abandon(admissions[number])
    return admissions


def _replay(log: Sequence[LoggedRequest], model: CacheModel[A]) -> list[A]:
    return replay(log, lambda request: model.admit(request.prompt), model)


def _events(log: Sequence[LoggedRequest]) -> Iterator[tuple[_Moment, int]]:
    """(what happened, to which request), in order. At the same time, what others did comes before a request is sent."""
    events: list[tuple[int, int, int, _Moment]] = []
    for number, request in enumerate(log):
        sent, first, end = request.sent_ns, request.first_ns, request.end_ns
        if first is None and request.complete:  # an answer of no tokens
            first = end
        events.append((sent, 2, number, "sent"))
        if first is not None:
            events.append((first, 0 if first > sent else 3, number, "first"))
        events.append((end, 1 if end > sent else 4, number, "end"))
    events.sort(key=lambda event: event[:3])
    return ((moment, number) for _, _, number, moment in events)


def _known_at_once(
    log: Sequence[LoggedRequest], endless: Endless, hit: Callable[[Endless, LoggedRequest], int]
) -> list[int]:
    """What `hit` says of each request, where those before it were known with their answers when they were sent."""
    hits = []
    for request in log:
        hits.append(hit(endless, request))
        endless.learn_with(request.prompt, request.output)
    return hits


def _cached(admissions: Sequence[Admission]) -> list[int]:
    return [admission.cached_tokens for admission in admissions]
