"""What the plots of one target are made of: sums over its measured requests, and the times of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from harness.analysis.grouped import Floats, Groups, Ints, counts, first_and_last, sums
from harness.analysis.pages import Replica
from harness.analysis.run import TargetRun
from harness.report.pieces import LAST_TURN, Piece, TimeBins, is_timed, pieces

DRAWN = 2_000
"""Requests that are drawn by chance."""
_SEED = 20_261_129


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

    def add(self, groups: Groups, piece: Piece) -> None:
        """`groups`, (requests of the piece,): the group of each."""
        count = len(self.requests)
        both = piece.which < 2
        told = groups[both]
        self.requests[:] += counts(groups, count)
        self.reporting[:] += counts(told, count)
        self.prompt_tokens[:] += sums(told, piece.prompt_tokens[both], count)
        self.cached_tokens[:] += sums(told, piece.cached_tokens[both], count)


@dataclass(frozen=True, slots=True)
class Timed:
    """The successful requests whose times count; each of shape (requests,), a time that is not known is nan."""

    ttft_ms: Floats
    tpot_ms: Floats
    sent: Groups
    turn: Groups
    which: Groups
    """These three as in `Piece`."""


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
    """What is drawn of one target: its measured requests, of which it takes one pass, and its metrics pages."""

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
        sessions, chance = _Sessions(), _Chance()
        late = _Columns(int(run.is_measured.sum()), np.float32, np.int8)
        timed = _Columns(int(is_timed(run).sum()), np.float64, np.float64, np.int8, np.int8, np.int8)
        for piece in pieces(run, bins):
            self.by_bin.add(piece.sent, piece)
            self.by_turn.add(piece.turn, piece)
            self.over += counts(piece.over, bins.count)
            self.cached_tokens += int(piece.cached_tokens[piece.cached_tokens >= 0].sum())
            sessions.add(piece)
            chance.add(piece)
            late.add(piece.late_ms, piece.sent)
            of_timed = (piece.ttft_ms, piece.tpot_ms, piece.sent, piece.turn, piece.which)
            timed.add(*(column[piece.timed] for column in of_timed))
        self.sessions_begun, self.sessions_over = sessions.counts(bins.count)
        """Shapes (bins,): sessions whose first measured request was sent in it, and whose last was over in it."""
        self.late_ms, self.late_sent = late.columns
        """Shapes (measured requests,): how late each was sent, and its bin; below 0: it was not."""
        self.timed = Timed(*timed.columns)
        self.drawn = chance.drawn()


class _Columns:
    """Columns of so many rows, filled from the first row on."""

    def __init__(self, rows: int, *kinds: npt.DTypeLike) -> None:
        self.columns: list[Any] = [np.empty(rows, kind) for kind in kinds]
        self._end = 0

    def add(self, *rows: Floats | Groups) -> None:
        here = slice(self._end, self._end + len(rows[0]))
        self._end = here.stop
        for column, values in zip(self.columns, rows, strict=True):
            column[here] = values


class _Sessions:
    """The bins in which each session's first request was sent and its last was over."""

    def __init__(self) -> None:
        self._found: list[tuple[Ints, Groups, Groups]] = []

    def add(self, piece: Piece) -> None:
        own = (piece.session >= 0) & (piece.sent >= 0)
        self._found.append(first_and_last(piece.session[own], piece.sent[own], piece.over[own]))

    def counts(self, bins: int) -> tuple[Ints, Ints]:
        columns = (np.concatenate(column) for column in zip(*self._found, strict=True))
        _, first, last = first_and_last(*columns)
        return counts(first, bins), counts(last, bins)


class _Chance:
    """`DRAWN` of all requests that tell what they hit, each as likely as any other, and the same ones each time."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(_SEED)
        self._keys = np.empty(0)
        self._columns: list[Any] = []
        self._of = 0

    def add(self, piece: Piece) -> None:
        places = np.flatnonzero(piece.timed & (piece.which < 2) & ~np.isnan(piece.ttft_ms))
        self._of += len(places)
        keys = self._generator.random(len(places))
        if len(self._keys) == DRAWN:
            places, keys = places[keys < self._keys[-1]], keys[keys < self._keys[-1]]
        columns = (piece.prompt_tokens - piece.cached_tokens, piece.ttft_ms, piece.which, piece.session)
        some = [column[places] for column in columns]
        keys = np.concatenate([self._keys, keys])
        taken = np.argsort(keys, kind="stable")[:DRAWN]
        self._keys = keys[taken]
        of_all = (np.concatenate(pair) for pair in zip(self._columns, some, strict=True)) if self._columns else some
        self._columns = [column[taken] for column in of_all]

    def drawn(self) -> Drawn:
        uncached_tokens, ttft_ms, which, session = self._columns
        return Drawn(uncached_tokens, ttft_ms, which, session, self._of)
