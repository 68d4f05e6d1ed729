"""Cached tokens of each request where several replicas answer, each with a cache of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.analysis.expected import Expectation, expect, replay
from harness.analysis.expected_engines import EngineCache
from harness.analysis.expected_slots import Sight, WatchedSlots
from harness.analysis.request_log import LoggedRequest, RequestLog
from harness.cache.base import Prompt


def replicas_of(log: RequestLog) -> list[str | None]:
    """Which replica answered each request; None: it is not known."""
    column = log.rows["replica"]
    return column.astype(object).where(column.notna(), None).tolist()


def replica_names(log: RequestLog) -> tuple[str, ...]:
    """All that answered."""
    return tuple(sorted({name for name in replicas_of(log) if name is not None}))


def silent_requests(log: RequestLog) -> Iterator[str]:
    """A sentence if some requests do not tell their replica where others do."""
    replicas = replicas_of(log)
    silent = replicas.count(None)
    if 0 < silent < len(replicas):
        yield (
            f"{silent} of {len(replicas)} requests do not tell which replica they went to: they are taken to have gone "
            "to the one that held most of their prompts, and to have left nothing there."
        )


def expect_on_replicas(log: RequestLog, cache: EngineCache) -> Expectation:
    """As `expect`, with a cache as `cache.model` makes it for each of `cache.replicas`.

    Kept is what the best of them holds when a request is looked up, found is what its own does.
    """
    known = expect(log.requests, replace(cache, model=None))
    if cache.model is None or cache.is_off:
        return known
    caches = ReplicaCaches(cache.model, cache.replicas)
    seats = replay(log.requests, caches.admit, caches)
    computed = list(known.computed)
    kept = [max(seat.cached_tokens, seat.elsewhere) for seat in seats]
    for number, seat in enumerate(seats):
        if isinstance(seat.cache, WatchedSlots):
            # It was looked up when it got its slot. One that never gets one was overtaken, in the log, by the end of
            # those before it.
            sight = seat.cache.sights.get(seat.admission, Sight(0, 0))
            computed[number], kept[number] = sight.anywhere, sight.any_slot
    return replace(known, computed=computed, kept=kept, found=[seat.cached_tokens for seat in seats])


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """One request's hold on the cache of its replica."""

    cache: Any
    """None: the replica is not known."""
    admission: Any
    elsewhere: int
    """Cached tokens that the best of the other replicas had for it when it was sent."""

    @property
    def cached_tokens(self) -> int:
        return self.elsewhere if self.cache is None else int(self.admission.cached_tokens)


class ReplicaCaches:
    """The caches of all replicas, each request in that of its own.

    A replica may also be heard of late: its cache is empty until then, and an empty one has nothing for anybody.
    """

    def __init__(self, model: Callable[[], Any], replicas: Iterable[str] = ()) -> None:
        """`model` makes an empty cache, with `peek`."""
        self._model = model
        self._caches = {name: model() for name in replicas}
        self._join()

    def _join(self) -> None:
        if slots := [cache for cache in self._caches.values() if isinstance(cache, WatchedSlots)]:
            WatchedSlots.join(slots)

    def admit(self, request: LoggedRequest) -> Seat:
        place = request.replica
        if place is not None and place not in self._caches:
            self._caches[place] = self._model()
            self._join()
        others = [cache.peek(request.prompt) for name, cache in self._caches.items() if name != place]
        cache = None if place is None else self._caches[place]
        if isinstance(cache, WatchedSlots):
            admission: Any = cache.admit(request.prompt, slot=request.slot)
        else:
            admission = None if cache is None else cache.admit(request.prompt)
        return Seat(cache, admission, max(others, default=0))

    def forget(self) -> None:
        """As `WatchedSlots.forget`."""
        for cache in self._caches.values():
            if isinstance(cache, WatchedSlots):
                cache.forget()

    def prefilled(self, seat: Seat) -> None:
        if seat.cache is not None:
            seat.cache.prefilled(seat.admission)

    def finish(self, seat: Seat, output: Prompt) -> None:
        if seat.cache is not None:
            seat.cache.finish(seat.admission, output)

    def abandon(self, seat: Seat) -> None:
        if seat.cache is not None:
            seat.cache.abandon(seat.admission)
