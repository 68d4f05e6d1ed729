"""What is followed over a run to see when it is steady: a figure by window of equally many requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

BATCH = 5
"""Requests of a window, at least."""
WINDOWS = 100
"""Of a series, at most."""

Kind = Literal["share", "ms", "count"]


@dataclass(frozen=True, slots=True)
class Series:
    """What is looked at, in windows of equally many requests, in order of sending; each of shape (windows,)."""

    name: str
    """As a sentence begins: hit rate, TTFT p50, requests in flight."""
    kind: Kind
    end_s: Floats
    """When the last request of the window was sent."""
    values: Floats

    @property
    def scale(self) -> Floats:
        """As changes are judged: shares by their difference, all else by its ratio."""
        return self.values if self.kind == "share" else np.log(np.maximum(self.values, 1e-9))


def windows_of(sent_s: Floats) -> Ints:
    """The window of each request, (requests,), by order of sending: equally many in each, `BATCH` or more."""
    number = max(1, min(WINDOWS, len(sent_s) // BATCH))
    places = np.empty(len(sent_s), dtype=np.int64)
    places[np.argsort(sent_s, kind="stable")] = np.arange(len(sent_s)) * number // max(1, len(sent_s))
    return places


def ratio_series(name: str, sent_s: Floats, upper: Floats, lower: Floats) -> Series:
    """Sum of `upper` / sum of `lower` by window, such as cached over prompt tokens; of requests without a nan."""
    known = np.flatnonzero(~np.isnan(upper) & ~np.isnan(lower))
    window = windows_of(sent_s[known])
    above, below = (np.bincount(window, weights=values[known]) for values in (upper, lower))
    has = below > 0
    return Series(name, "share", _ends(sent_s[known], window)[has], above[has] / below[has])


def median_series(name: str, sent_s: Floats, times_ms: Floats) -> Series:
    """The median by window, of requests that are not nan."""
    known = np.flatnonzero(~np.isnan(times_ms))
    window = windows_of(sent_s[known])
    order = np.argsort(window, kind="stable")
    parts = np.split(times_ms[known][order], np.flatnonzero(np.diff(window[order])) + 1)
    values = np.array([np.median(part) for part in parts if len(part)])
    return Series(name, "ms", _ends(sent_s[known], window), values)


def in_flight_series(name: str, sent_s: Floats, end_s: Floats) -> Series:
    """Requests under way, itself among them, whenever one was sent: the mean by window. `end_s` inf: not by the end."""
    window = windows_of(sent_s)
    started = np.searchsorted(np.sort(sent_s), sent_s, side="right")
    ended = np.searchsorted(np.sort(end_s), sent_s, side="right")
    means = np.bincount(window, weights=(started - ended).astype(np.float64)) / np.bincount(window)
    return Series(name, "count", _ends(sent_s, window), means)


def _ends(sent_s: Floats, window: Ints) -> Floats:
    ends = np.full(int(window.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(ends, window, sent_s)
    return ends
