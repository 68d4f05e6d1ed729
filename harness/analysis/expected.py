"""Cached tokens of each request of a log under one restriction after the other, down to the cache as it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, Literal, TypeVar

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
    """What each request of a whole log had, in the log's order."""
    course = Replay(admit, model)
    for request in log:
        course.add(request)
    ended = {number: admission for number, _, admission in course.until(None)}
    return [ended[number] for number in range(len(log))]


class Replay(Generic[A]):
    """Lets each request come in when it was sent, be computed at its first token, and end when it ended.

    At the same time, what others did comes before a request is sent. Requests may be added as they become known, as
    long as `until` was not asked for a time after they were sent.
    """

    def __init__(self, admit: Callable[[LoggedRequest], A], model: Admitted[A]) -> None:
        self._admit = admit
        self._model = model
        self._numbers = itertools.count()
        self._events: list[tuple[int, int, int, _Moment, LoggedRequest]] = []
        """A heap: time, order at that time, number of the request, what happened to it."""
        self._under_way: dict[int, A] = {}

    def add(self, request: LoggedRequest) -> None:
        number = next(self._numbers)
        sent, first, end = request.sent_ns, request.first_ns, request.end_ns
        if first is None and request.complete:  # an answer of no tokens
            first = end
        heappush(self._events, (sent, 2, number, "sent", request))
        if first is not None:
            heappush(self._events, (first, 0 if first > sent else 3, number, "first", request))
        heappush(self._events, (end, 1 if end > sent else 4, number, "end", request))

    def until(self, time_ns: int | None) -> Iterator[tuple[int, LoggedRequest, A]]:
        """Go on to a time (None: to the end); gives those that end before it, with their numbers in order of `add`."""
        while self._events and (time_ns is None or self._events[0][0] < time_ns):
            _, _, number, moment, request = heappop(self._events)
            if moment == "sent":
                self._under_way[number] = self._admit(request)
            elif moment == "first":
                self._model.prefilled(self._under_way[number])
            else:
                admission = self._under_way.pop(number)
                if request.complete:
                    self._model.finish(admission, request.output)
                else:
                    self._model.abandon(admission)
                yield number, request, admission


def _replay(log: Sequence[LoggedRequest], model: CacheModel[A]) -> list[A]:
    return replay(log, lambda request: model.admit(request.prompt), model)


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
