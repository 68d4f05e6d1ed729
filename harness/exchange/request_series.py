"""What the requests of a target add up to as time goes on, counted piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.exchange.families import CACHED_TOKENS, OUTPUT_TOKENS, PROMPT_TOKENS, REQUESTS, TIMES, Family
from harness.exchange.openmetrics import BOUNDS_S, Histogram, Scalars, Series

STEP_NS = 5_000_000_000
"""Between two samples."""
_STAMPS = ("t_due", "t_send", "t_first", "t_last", "t_end")
COLUMNS = (*_STAMPS, "status", "prompt_tokens", "cached_tokens", "output_tokens", *TIMES)
"""Of `requests`, that are looked at."""
_WIDTH = len(BOUNDS_S) + 1
_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


class RequestSeries:
    """A request counts from when it ended."""

    def __init__(self, start_ns: int) -> None:
        """`start_ns`: not after any request was due."""
        self._start_ns = start_ns
        self._steps = 0
        self._cells: dict[tuple[Family, str], npt.NDArray[Any]] = {}
        """Family and label -> what was added in each step; of a histogram in each step and bucket."""
        self._sums: dict[tuple[Family, str], _Floats] = {}
        """Of histograms, the seconds."""

    @property
    def times_ns(self) -> list[int]:
        """Of the samples; the first is before everything, so that all of it is growth."""
        return [self._start_ns + STEP_NS * number for number in range(self._steps)]

    def add(self, rows: Any, counted: _Bools) -> None:
        """`rows`: a frame of `COLUMNS`; `counted`, (rows,): those whose times count."""
        if rows.empty:
            return
        ended = np.maximum.reduce([rows[name].to_numpy(dtype=np.int64, na_value=-1) for name in _STAMPS])
        steps = (ended - self._start_ns) // STEP_NS + 1
        self._steps = max(self._steps, int(steps.max()) + 1)
        status = rows["status"].to_numpy(dtype=object)
        for one in set(status):
            self._count((REQUESTS, one), steps, status == one)
        prompt, cached, output = (_floats(rows, name) for name in ("prompt_tokens", "cached_tokens", "output_tokens"))
        has_prompt, both = ~np.isnan(prompt), ~np.isnan(prompt) & ~np.isnan(cached)
        self._count((PROMPT_TOKENS, "reported"), steps, both, prompt)
        self._count((PROMPT_TOKENS, "unreported"), steps, has_prompt & ~both, prompt)
        self._count((CACHED_TOKENS, ""), steps, both, cached)
        self._count((OUTPUT_TOKENS, ""), steps, ~np.isnan(output), output)
        counts = (status == "ok") & counted
        by_cache = {"hit": both & (2 * cached >= prompt), "miss": both & (2 * cached < prompt), "unreported": ~both}
        for column, family in TIMES.items():
            seconds = _floats(rows, column) / 1e3
            for cache, which in by_cache.items():
                self._time((family, cache), steps, counts & which & ~np.isnan(seconds), seconds)

    def _count(self, key: tuple[Family, str], steps: _Ints, which: _Bools, values: _Floats | None = None) -> None:
        if which.any():
            self._cells[key] = _plus(
                self._cells.get(key), np.bincount(steps[which], None if values is None else values[which])
            )

    def _time(self, key: tuple[Family, str], steps: _Ints, which: _Bools, seconds: _Floats) -> None:
        if which.any():
            cells = steps[which] * _WIDTH + np.searchsorted(BOUNDS_S, seconds[which])
            self._cells[key] = _plus(self._cells.get(key), np.bincount(cells))
            self._sums[key] = _plus(self._sums.get(key), np.bincount(steps[which], seconds[which]))

    def series(self, labels: Mapping[str, str]) -> Iterator[Series]:
        """Of what was added; what was in no request is not there."""
        times = self.times_ns
        for (family, label), added in sorted(self._cells.items(), key=lambda one: one[0][1]):
            own = dict(labels) | dict(zip(family.labels, [label], strict=False))
            if family.kind == "histogram":
                sums = _padded(self._sums[family, label], len(times)).cumsum()
                counts = _padded(added, len(times) * _WIDTH).reshape(len(times), _WIDTH).cumsum(axis=0).cumsum(axis=1)
                yield Histogram(family, own, times, counts, sums.tolist())
            else:
                yield Scalars(family, own, times, _padded(added, len(times)).cumsum().tolist())


def _floats(rows: Any, name: str) -> _Floats:
    values: _Floats = rows[name].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _plus(total: npt.NDArray[Any] | None, more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if total is None:
        return more
    both: npt.NDArray[Any] = _padded(total, len(more)) + _padded(more, len(total))
    return both


def _padded(values: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    """With zeros behind them where there are fewer."""
    padded: npt.NDArray[Any] = np.zeros(max(len(values), least), values.dtype)
    padded[: len(values)] = values
    return padded
