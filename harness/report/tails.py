"""How TTFT and TPOT are distributed, hits against misses: exact quantiles, close together in the tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.analysis.grouped import quantiles_of
from harness.report.pieces import WHICH
from harness.report.source import Source

Time = Literal["ttft_ms", "tpot_ms"]
_SHARES = (
    0.0,
    *(number / 100 for number in range(1, 100)),
    *(1 - number * 10**-power for power in (3, 4, 5, 6) for number in (8, 6, 4, 3, 2, 1.5, 1)),
)


@dataclass(frozen=True, slots=True)
class Tail:
    """Of the successful requests of one kind: hit, miss, or not told."""

    which: str
    n: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    longest_ms: float
    curve: tuple[tuple[float, float], ...]
    """(share of the requests that took at most as long, ms)."""


def tails(source: Source, time: Time) -> list[Tail]:
    """hit first, then miss, then those that do not tell; those that have no request are left out."""
    values = source.timed.ttft_ms if time == "ttft_ms" else source.timed.tpot_ms
    found = quantiles_of(source.timed.which, values, [*_SHARES, 1.0])
    return [_tail(WHICH[which], n, at) for which, (n, at) in found.items()]


def _tail(which: str, n: int, values: list[float]) -> Tail:
    known = dict(zip(_SHARES, values, strict=False))
    # Beyond 1 - 1/n there is nothing but the longest.
    curve = [(share, value) for share, value in known.items() if share <= 1 - 1 / n]
    if n > 1 and curve[-1][0] < 1 - 1 / n:
        curve.append((1 - 1 / n, values[-1]))
    return Tail(which, n, known[0.5], known[0.9], known[0.99], values[-1], tuple(curve))
