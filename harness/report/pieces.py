"""The measured requests of a target piece by piece, as plain numbers, and the bins of time that they lie in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from harness.analysis.grouped import Floats, Groups, Ints
from harness.analysis.run import TargetRun

BINS = 60
"""At most, on an axis of time."""
WHICH = ("hit", "miss", "not told")
"""A hit is a request of which at least half of the prompt came from the cache, as on the live page."""
LAST_TURN = 40
"""Later turns are taken together."""
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400)
_STAMPS = ("t_send", "t_first", "t_last", "t_end")
_COUNTS = ("prompt_tokens", "cached_tokens", "turn", "session")
_TIMES = ("ttft_ms", "tpot_ms", "late_ms")


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
class Piece:
    """Measured requests; each of shape (requests,). A count that is not known is below 0, a time nan."""

    sent: Groups
    """The bin in which it was sent; below 0: it was not."""
    over: Groups
    """The bin after which nothing more is known of it; below 0: it was not sent."""
    prompt_tokens: Ints
    cached_tokens: Ints
    turn: Groups
    """`LAST_TURN`: this one or a later one; below 0: of no session."""
    session: Ints
    ttft_ms: Floats
    tpot_ms: Floats
    late_ms: Floats
    which: Groups
    """Place in `WHICH`."""
    timed: npt.NDArray[np.bool_]
    """It succeeded, and its times count."""


def is_timed(run: TargetRun) -> npt.NDArray[np.bool_]:
    """Shape (rows,): the successful requests whose times count."""
    return run.is_counted & (run.rows.read("status")["status"] == "ok").to_numpy(dtype=bool)


def pieces(run: TargetRun, bins: TimeBins) -> Iterator[Piece]:
    """All measured requests, in the order of the parts; one piece at least."""
    timed, start = is_timed(run), 0
    for rows in run.rows.pieces(*_STAMPS, *_COUNTS, *_TIMES):
        here = slice(start, start + len(rows))
        start = here.stop
        measured = run.is_measured[here]
        some = rows if measured.all() else rows[measured]
        stamps = [some[name].to_numpy(dtype=np.int64, na_value=-1) for name in _STAMPS]
        prompt, cached, turn, session = (some[name].to_numpy(dtype=np.int64, na_value=-1) for name in _COUNTS)
        ttft_ms, tpot_ms, late_ms = (some[name].to_numpy() for name in _TIMES)
        which = np.where(2 * cached >= prompt, np.int8(0), np.int8(1))
        which[(cached < 0) | (prompt < 0)] = 2
        is_sent = stamps[0] >= 0
        yield Piece(
            sent=np.where(is_sent, bins.of(stamps[0]), np.int8(-1)),
            over=np.where(is_sent, bins.of(np.maximum.reduce(stamps)), np.int8(-1)),
            prompt_tokens=prompt,
            cached_tokens=cached,
            turn=np.minimum(turn, LAST_TURN).astype(np.int8),
            session=session,
            ttft_ms=ttft_ms,
            tpot_ms=tpot_ms,
            late_ms=late_ms,
            which=which,
            timed=timed[here][measured],
        )
