"""The working set over time: what prompts could come back to, window by window."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.request_log import RequestLog
from harness.analysis.time_windows import WINDOWS, time_windows
from harness.cache.working_set import working_set_of_items


@dataclass(frozen=True, slots=True)
class InUse:
    """One window, in distinct tokens of prompts and answers; those of a prefix count once."""

    key: int
    """Number of the window, as in `Waterfall.by_window`."""
    start_s: float
    """Since the first measured request was sent."""
    end_s: float
    working_set_tokens: int
    """The most, at any moment of the window, that had been sent and was sent again later in the run."""
    touched_tokens: int
    """Of the requests that were sent in the window: Denning's working set (1968) of a window of this length."""


def working_sets(log: RequestLog) -> tuple[InUse, ...]:
    """Of all traffic, in all windows of the measured time, also those in which nothing was sent; empty if nothing was
    measured. An answer counts as known when its request was sent, as it does in the waterfall's first step.
    """
    windows = time_windows(log)
    if windows is None:
        return ()
    used = working_set_of_items([(*request.prompt, *request.output) for request in log.requests])
    left = np.concatenate(([0], used.reusable()))
    borders = np.searchsorted(windows.numbers, np.arange(WINDOWS + 1))
    return tuple(
        InUse(
            key=number,
            start_s=number * windows.length_s,
            end_s=(number + 1) * windows.length_s,
            # What a window begins with is left by the request before its first one.
            working_set_tokens=int(left[start : end + 1].max()),
            touched_tokens=used.distinct(start, end),
        )
        for number, (start, end) in enumerate(pairwise(borders.tolist()))
    )
