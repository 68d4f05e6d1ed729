"""TTFT against the tokens that had to be computed, and what a thousand of them cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.report.pieces import WHICH
from harness.report.source import DRAWN, Source

PAIRS = 20_000
DRAWS = 400
LEAST_REQUESTS, LEAST_SESSIONS = 20, 5
LEAST_SPREAD_TOKENS = 32
"""Of the uncached tokens, from their 5th to their 95th percentile: below there is no slope to see."""
_SEED = 20_261_130

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Point:
    """One request."""

    uncached_tokens: int
    ttft_ms: float
    which: str
    """hit or miss."""


@dataclass(frozen=True, slots=True)
class Fit:
    """TTFT = base + slope x uncached tokens, by Theil (1950) and Sen (1968): the median of the slopes of pairs."""

    ms_per_1000: float
    low: float
    high: float
    """95 % of the slopes when sessions are drawn again with replacement."""
    base_ms: float
    """The median of what is left of the TTFT at 0 tokens."""
    saved_s: float
    saved_low_s: float
    saved_high_s: float
    """Slope x cached tokens of all measured requests."""


@dataclass(frozen=True, slots=True)
class Prefill:
    points: tuple[Point, ...]
    requests: int
    """Of so many."""
    fit: Fit | None
    reason: str | None
    """Why there is no fit."""


def prefill(source: Source, points: int = DRAWN) -> Prefill:
    """Of the successful requests that report what they hit, `points` of them at most."""
    drawn = source.drawn
    tokens, ttft_ms, which, sessions = (
        column[:points].tolist() for column in (drawn.uncached_tokens, drawn.ttft_ms, drawn.which, drawn.session)
    )
    found = tuple(
        Point(uncached, time_ms, WHICH[one]) for uncached, time_ms, one in zip(tokens, ttft_ms, which, strict=True)
    )
    fitted = fit(tokens, ttft_ms, sessions, source.cached_tokens)
    return Prefill(found, drawn.of, *((None, fitted) if isinstance(fitted, str) else (fitted, None)))


def fit(uncached_tokens: list[int], ttft_ms: list[float], sessions: list[int], cached_tokens: int) -> Fit | str:
    """Or why it cannot be told."""
    if len(ttft_ms) < LEAST_REQUESTS:
        return f"{len(ttft_ms)} requests report what they hit; it takes {LEAST_REQUESTS}"
    own = np.unique(np.array(sessions), return_inverse=True)[1].astype(np.int64)
    if own.max() + 1 < LEAST_SESSIONS:
        return f"the requests are of {own.max() + 1} sessions; it takes {LEAST_SESSIONS}"
    tokens, times = np.array(uncached_tokens, dtype=np.float64), np.array(ttft_ms, dtype=np.float64)
    spread = float(np.subtract(*np.percentile(tokens, [95, 5])))
    if spread < LEAST_SPREAD_TOKENS:
        return f"nearly all requests computed as many tokens as each other (within {spread:,.0f})"
    generator = np.random.default_rng(_SEED)
    slope = _slope(tokens, times, np.arange(len(times)), generator, 25 * PAIRS)
    slopes = [_slope(tokens, times, _drawn(own, generator), generator, PAIRS) for _ in range(DRAWS)]
    low, high = np.nanpercentile(slopes, [2.5, 97.5])
    if low <= 0:
        return (
            f"the slope is {1_000 * slope:,.1f} ms per 1,000 tokens, and cannot be told from 0 "
            f"({1_000 * low:,.1f} to {1_000 * high:,.1f}): something else than prefill makes the TTFT"
        )
    saved = cached_tokens / 1_000
    return Fit(
        ms_per_1000=1_000 * slope,
        low=1_000 * float(low),
        high=1_000 * float(high),
        base_ms=float(np.median(times - slope * tokens)),
        saved_s=slope * saved,
        saved_low_s=float(low) * saved,
        saved_high_s=float(high) * saved,
    )


def _drawn(sessions: Ints, generator: np.random.Generator) -> Ints:
    """Requests of as many sessions as there are, drawn with replacement."""
    times = np.bincount(generator.integers(0, sessions.max() + 1, sessions.max() + 1), minlength=sessions.max() + 1)
    return np.repeat(np.arange(len(sessions)), times[sessions])


def _slope(tokens: Floats, times: Floats, chosen: Ints, generator: np.random.Generator, pairs: int) -> float:
    """Of all pairs of the chosen requests if they are few, else of some."""
    if len(chosen) * (len(chosen) - 1) // 2 <= pairs:
        one, other = (chosen[index] for index in np.triu_indices(len(chosen), 1))
    else:
        one, other = chosen[generator.integers(0, len(chosen), (2, pairs))]
    runs = tokens[one] - tokens[other]
    apart = runs != 0
    if not apart.any():
        return float("nan")
    return float(np.median((times[one] - times[other])[apart] / runs[apart]))
