"""The expected hits of a run that goes on: the same models as in the report, fed as workers tell what they sent.

Run as a program it reads lines of JSON: first `begin`, then what `harness.record.news.RequestNews.take` gave, with the
number of its `worker`. Each of these is answered with a line of what `LiveExpectation.hear` says.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from harness.analysis.expected import Replay
from harness.analysis.expected_endless import Endless
from harness.analysis.expected_engines import EngineCache, engine_cache
from harness.analysis.expected_replicas import ReplicaCaches
from harness.analysis.expected_slots import Sight, WatchedSlots
from harness.analysis.request_log import LoggedRequest, answer_items, logged_request
from harness.cache.base import Item
from harness.record.manifest import TargetRecord
from harness.record.news import PATHS_KEPT, Told
from harness.workload.content import live_answer_id

MOST_MEMORY_BYTES = 1 << 30
"""Models of blocks never forget a block that they saw, so there must be an end some time."""
MOST_WAITING = 2_000_000
"""Segments of requests that cannot be replayed yet, as an earlier one is still under way."""
_IDS = 2**64
"""Content ids lie within so many."""


class Stopped(Exception):
    """Nothing more can be said, for a reason that can follow "as"."""


class Paths:
    """The prompts of one worker's requests, put together again from what each has that the one before had not."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int | None], tuple[Item, ...]] = {}

    def of(self, told: Told, shift: int) -> tuple[Item, ...]:
        """Its segments, `shift` added to each id: chance agreement of first words of two segments is left out here."""
        key = told.target, told.session
        rest = [(identity + shift, tokens) for identity, tokens in zip(told.path, told.path_tokens, strict=True)]
        path = (*self._last.pop(key, ())[: told.same], *rest)
        self._last[key] = path
        if len(self._last) > PATHS_KEPT:
            del self._last[next(iter(self._last))]
        return path


class LiveTarget:
    """The cache of one target."""

    def __init__(self, record: TargetRecord, run_id: str, number: int) -> None:
        self._record = record
        self._run_id = run_id
        self._number = number
        self._new: list[LoggedRequest] = []
        self._counts: dict[int, bool | None] = {}
        """Number in the replay -> whether it reports its cached tokens; None: it is none of the load."""
        self._added = itertools.count()
        self._nameless = itertools.count()
        self._course: Replay[Any] | None = None
        self._found: Callable[[Any], int]
        self._forget: Callable[[], None]
        self._has_replicas = False
        self.waiting = 0
        """Segments of those that have not ended by what is replayed."""
        self.unknown = ""
        """Why nothing is expected of it."""

    def add(self, told: Told, path: Sequence[Item], shift: int, of_load: bool) -> None:
        """`path` with `shift` added to each of its ids."""
        prompt = tuple(item for item in path if item[1])
        before_reset = not of_load and self._record.cold_start.startswith("reset:")
        if told.status == "http_error" or not prompt or before_reset or self.unknown:
            return
        identity = (
            _IDS + next(self._nameless)
            if told.session is None or told.turn is None
            else live_answer_id(self._run_id, self._number, told.session, told.turn)
        )
        answer = answer_items(identity + shift, told.output_tokens, told.planned_output_tokens, told.status)
        stamps = told.t_send, told.t_first, told.t_last, told.t_end
        self.waiting += len(prompt)
        self._new.append(logged_request(prompt, answer, stamps, told.status, told.slot, told.replica))
        self._counts[next(self._added)] = told.reports if of_load else None

    def until(self, time_ns: int) -> Iterator[tuple[LoggedRequest, bool, int]]:
        """Those of the load that ended before: whether each reports its cached tokens, and how many are expected."""
        if self.unknown or (self._course is None and not self._new):
            return
        if self._course is None:
            self._begin(any(request.replica is not None for request in self._new))
        if self._course is None:
            return
        for request in self._new:
            if request.replica is not None and not self._has_replicas:
                raise Stopped("the first answers did not tell which replica they came from, and later ones do")
            self._course.add(request)
        self._new.clear()
        for number, request, admission in self._course.until(time_ns):
            found = self._found(admission)
            reports = self._counts.pop(number)
            self.waiting -= len(request.prompt)
            if reports is not None:
                yield request, reports, found
        self._forget()

    def _begin(self, has_replicas: bool) -> None:
        """As `expect` and `expect_on_replicas` do, of which only what was found is wanted here."""
        cache = engine_cache(self._record, ("each",) if has_replicas else ())
        self._has_replicas = has_replicas
        if cache.model is None and not cache.is_off:
            self.unknown = cache.unknown
        elif cache.is_off or cache.model is None:
            endless = Endless(cache.rules)
            self._course = Replay(lambda request: endless.admit(request.prompt), endless)
            self._found, self._forget = lambda _: 0, endless.clear
        elif has_replicas:
            caches = ReplicaCaches(cache.model)
            self._course = Replay(caches.admit, caches)
            self._found, self._forget = lambda seat: seat.cached_tokens, caches.forget
        else:
            self._begin_with_one(cache, cache.model())

    def _begin_with_one(self, cache: EngineCache, model: Any) -> None:
        self._found, self._forget = lambda admission: admission.cached_tokens, lambda: None
        if isinstance(model, WatchedSlots):
            self._course = Replay(lambda request: model.admit(request.prompt, slot=request.slot), model)
            self._forget = model.forget
            if cache.has_hidden_places:
                self._found = lambda admission: model.sights.get(admission, Sight(0, 0)).any_slot
        else:
            self._course = Replay(lambda request: model.admit(request.prompt), model)


class LiveExpectation:
    """One leg of a run."""

    def __init__(self, begin: Mapping[str, Any]) -> None:
        """`begin`: run_id; origin_ns, from which windows of width_ns are counted; the numbers of all workers; and
        targets as in run.json, by their numbers."""
        self._origin_ns, self._width_ns = begin["origin_ns"], begin["width_ns"]
        self._targets = {
            int(number): LiveTarget(TargetRecord.model_validate(record), begin["run_id"], int(number))
            for number, record in begin["targets"].items()
        }
        self._until_ns: dict[int, int] = dict.fromkeys(begin["workers"], 0)
        self._reports: dict[int, int] = defaultdict(int)
        self._salts: dict[str | None, int] = defaultdict(itertools.count().__next__)
        """Numbers of cache salts, which part what would be equal otherwise."""
        self._paths: dict[int, Paths] = defaultdict(Paths)
        self._replayed_ns = 0

    def hear(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """until_ns: all that was sent before is known, and what ended before is counted. windows: by target, lists of
        (number of the window in which requests ended, their prompt tokens, those expected to be cached, and the same
        two of the requests that report cached tokens). unknown: by target, why nothing is expected of it.

        Raises Stopped.
        """
        worker = report["worker"]
        self._reports[worker] += 1
        if report["number"] != self._reports[worker]:
            raise Stopped(f"a report of worker {worker} was lost on its way")
        if report["is_full"]:
            raise Stopped(f"worker {worker} sends more than can be told meanwhile")
        for told in (Told(*plain) for plain in report["requests"]):
            if told.t_send < self._replayed_ns:
                raise Stopped("a clock was set back, so the order of requests is not known")
            shift = 2 * _IDS * self._salts[told.cache_salt]
            path = self._paths[worker].of(told, shift)
            self._targets[told.target].add(told, path, shift, of_load=worker in self._until_ns)
        if worker in self._until_ns:
            self._until_ns[worker] = report["until_ns"]
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        self._replayed_ns = max(self._replayed_ns, min(self._until_ns.values(), default=0))
        windows = {}
        for number, target in self._targets.items():
            sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
            for request, reports, expected in target.until(self._replayed_ns):
                both = [request.prompt_tokens, expected]
                added = [*both, *(both if reports else (0, 0))]
                window = (request.end_ns - self._origin_ns) // self._width_ns
                sums[window] = [one + more for one, more in zip(sums[window], added, strict=True)]
            windows[number] = [[window, *values] for window, values in sorted(sums.items())]
        if sum(target.waiting for target in self._targets.values()) > MOST_WAITING:
            raise Stopped("a request has been under way for so long that too many wait for its end")
        if _memory_bytes() > MOST_MEMORY_BYTES:
            raise Stopped(f"the model of the cache has grown to {MOST_MEMORY_BYTES >> 20} MiB")
        unknown = {number: target.unknown for number, target in self._targets.items() if target.unknown}
        return {"until_ns": self._replayed_ns, "windows": windows, "unknown": unknown}


def _memory_bytes() -> int:
    """The most that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Until the input ends, or a line says why there is nothing more."""
    expectation = LiveExpectation(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        try:
            answer = expectation.hear(json.loads(line))
        except Stopped as stopped:
            answer = {"stopped": str(stopped)}
        print(json.dumps(answer), flush=True)
        if "stopped" in answer:
            return


if __name__ == "__main__":
    main()
