"""What the plots of one target are made of: its measured requests, and its measured time in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from harness.analysis.grouped import Floats, Groups, Ints, counts, first_and_last, sums
from harness.analysis.pages import Replica
from harness.analysis.run import TargetRun

BINS = 60
"""At most, on an axis of time."""
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400)

WHICH = ("hit", "miss", "not told")
"""A hit is a request of which at least half of the prompt came from the cache, as on the live page."""
LAST_TURN = 40
"""Later turns are taken together."""
DRAWN = 2_000
"""Requests that are drawn by chance."""
_SEED = 20_261_129
_COLUMNS = (
    "t_send", "t_first", "t_last", "t_end", "session", "turn", "prompt_tokens", "cached_tokens", "ttft_ms", "tpot_ms",
    "late_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimeBins:
    """Equal stretches of time from the first measured request on."""

    start_ns: int
    width_ns: int
    count: int

    @classmethod
    def over(cls, start_ns: int, end_ns: int) -> Self:
        """At most `BINS`, of a width that people count in; metrics are scraped once a second, so none is narrower."""
        span_s = max(end_ns - start_ns, 1) / 1e9
        width_s = next((width for width in _WIDTHS_S if span_s / width <= BINS), span_s / BINS)
        width_ns = round(width_s * 1e9)
        return cls(start_ns, width_ns, (max(end_ns - start_ns, 1) - 1) // width_ns + 1)

    @property
    def width_s(self) -> float:
        return self.width_ns / 1e9

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.count * self.width_ns

    def start_s(self, number: int) -> float:
        """When bin `number` begins, in seconds since the first measured request."""
        return number * self.width_s

    def middle_s(self, number: int) -> float:
        return self.start_s(number) + self.width_s / 2

    def seconds(self, t_ns: int) -> float:
        return (t_ns - self.start_ns) / 1e9

    def of(self, times_ns: Ints) -> Groups:
        """The bin that each time lies in; those outside lie in the first or the last."""
        numbers = (times_ns - self.start_ns) // self.width_ns
        return np.clip(numbers, 0, self.count - 1).astype(np.int8)


@dataclass(frozen=True, slots=True)
class Sums:
    """Of measured requests, by turn or by the bin in which they were sent; each of shape (groups,)."""

    requests: Ints
    reporting: Ints
    """Requests that report both counts, whose sums are:"""
    prompt_tokens: Ints
    cached_tokens: Ints

    @classmethod
    def zeros(cls, groups: int) -> Self:
        return cls(*(np.zeros(groups, dtype=np.int64) for _ in range(4)))

    def add(self, groups: Groups, prompt_tokens: Ints, cached_tokens: Ints) -> None:
        """Tokens are below 0 where a request does not tell them."""
        count = len(self.requests)
        both = (prompt_tokens >= 0) & (cached_tokens >= 0)
        told = groups[both]
        self.requests[:] += counts(groups, count)
        self.reporting[:] += counts(told, count)
        self.prompt_tokens[:] += sums(told, prompt_tokens[both], count)
        self.cached_tokens[:] += sums(told, cached_tokens[both], count)


@dataclass(frozen=True, slots=True)
class Timed:
    """The successful requests whose times count; each of shape (requests,), a time that is not known is nan."""

    ttft_ms: Floats
    tpot_ms: Floats
    sent: Groups
    """Number of the bin."""
    turn: Groups
    """`LAST_TURN`: this one or a later one; below 0: of no session."""
    which: Groups
    """Place in `WHICH`."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Timed requests that tell what they hit, in an order by chance; each of shape (requests,)."""

    uncached_tokens: Ints
    ttft_ms: Floats
    which: Groups
    session: Ints
    """Below 0: of none."""
    of: int
    """They were drawn from so many."""


class Source:
    """What is drawn of one target: its measured requests in one pass over their columns, and its metrics pages."""

    def __init__(self, run: TargetRun, pages: Sequence[Replica]) -> None:
        self.pages = pages
        self.harness_health = run.harness_health
        first_ns, last_ns = run.times.first_sent_ns, run.times.last_answer_ns
        self.bins = None if first_ns is None or last_ns is None else TimeBins.over(first_ns, last_ns)
        """From the first measured request sent to the last answer; None: none was sent."""
        bins = self.bins or TimeBins(0, 1, 1)
        self.by_bin, self.by_turn = Sums.zeros(bins.count), Sums.zeros(LAST_TURN + 1)
        self.over = np.zeros(bins.count, dtype=np.int64)
        """Shape (bins,): requests of which nothing more is known after it."""
        self.cached_tokens = 0
        """Of all measured requests that tell."""
        is_timed = run.is_counted & (run.rows.read("status")["status"] == "ok").to_numpy(dtype=bool)
        n, measured = int(is_timed.sum()), int(run.is_measured.sum())
        self.timed = Timed(np.empty(n), np.empty(n), *(np.empty(n, dtype=np.int8) for _ in range(3)))
        self.late_ms, self.late_sent = np.empty(measured, np.float32), np.empty(measured, np.int8)
        """Shapes (measured requests,): how late each was sent, and its bin; below 0: it was not."""
        sessions, chance = _Sessions(), _Chance()
        start = start_timed = start_measured = 0
        for piece in run.rows.pieces(*_COLUMNS):
            of_piece = slice(start, start + len(piece))
            start += len(piece)
            is_measured, timed = run.is_measured[of_piece], is_timed[of_piece]
            if not is_measured.all():
                piece, timed = piece[is_measured], timed[is_measured]
            stamps = [piece[name].to_numpy(dtype=np.int64, na_value=-1) for name in _COLUMNS[:4]]
            prompt, cached, turn, session = (
                piece[name].to_numpy(dtype=np.int64, na_value=-1)
                for name in ("prompt_tokens", "cached_tokens", "turn", "session")
            )
            is_sent = stamps[0] >= 0
            sent = np.where(is_sent, bins.of(stamps[0]), np.int8(-1))
            over = np.where(is_sent, bins.of(np.maximum.reduce(stamps)), np.int8(-1))
            turn = np.minimum(turn, LAST_TURN).astype(np.int8)
            self.by_bin.add(sent, prompt, cached)
            self.by_turn.add(turn, prompt, cached)
            self.over += counts(over, bins.count)
            self.cached_tokens += int(cached[cached >= 0].sum())
            sessions.add(session[is_sent], sent[is_sent], over[is_sent])
            here = slice(start_measured, start_measured + len(piece))
            start_measured = here.stop
            self.late_ms[here], self.late_sent[here] = piece["late_ms"].to_numpy(), sent
            which = np.where(2 * cached >= prompt, 0, 1).astype(np.int8)
            which[(cached < 0) | (prompt < 0)] = 2
            ttft_ms = piece["ttft_ms"].to_numpy()
            chance.add(timed & (which < 2) & ~np.isnan(ttft_ms), prompt - cached, ttft_ms, which, session)
            here = slice(start_timed, start_timed + int(timed.sum()))
            start_timed = here.stop
            self.timed.ttft_ms[here], self.timed.tpot_ms[here] = ttft_ms[timed], piece["tpot_ms"].to_numpy()[timed]
            self.timed.sent[here], self.timed.turn[here], self.timed.which[here] = (
                sent[timed],
                turn[timed],
                which[timed],
            )
        self.sessions_begun, self.sessions_over = sessions.counts(bins.count)
        """Shapes (bins,): sessions whose first measured request was sent in it, and whose last was over in it."""
        self.drawn = chance.drawn()


class _Sessions:
    """The bins in which each session's first request was sent and its last was over."""

    def __init__(self) -> None:
        self._found: list[tuple[Ints, Groups, Groups]] = []

    def add(self, sessions: Ints, sent: Groups, over: Groups) -> None:
        """Of requests, each of shape (requests,); below 0: of no session."""
        own = sessions >= 0
        self._found.append(first_and_last(sessions[own], sent[own], over[own]))

    def counts(self, bins: int) -> tuple[Ints, Ints]:
        columns = (np.concatenate(column) for column in zip(*self._found, strict=True))
        _, first, last = first_and_last(*columns)
        return counts(first, bins), counts(last, bins)


class _Chance:
    """`DRAWN` of all requests that come by, each as likely as any other, and the same ones each time."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(_SEED)
        self._keys = np.empty(0)
        self._columns: list[Any] = []
        self._of = 0

    def add(self, which: npt.NDArray[np.bool_], *columns: Floats | Ints | Groups) -> None:
        """Of requests, each of shape (requests,); `which`: those that may be drawn."""
        places = np.flatnonzero(which)
        self._of += len(places)
        keys = self._generator.random(len(places))
        if len(self._keys) == DRAWN:
            places, keys = places[keys < self._keys[-1]], keys[keys < self._keys[-1]]
        some = [column[places] for column in columns]
        keys = np.concatenate([self._keys, keys])
        taken = np.argsort(keys, kind="stable")[:DRAWN]
        self._keys = keys[taken]
        of_all = (np.concatenate(pair) for pair in zip(self._columns, some, strict=True)) if self._columns else some
        self._columns = [column[taken] for column in of_all]

    def drawn(self) -> Drawn:
        uncached_tokens, ttft_ms, which, session = self._columns
        return Drawn(uncached_tokens, ttft_ms, which, session, self._of)
