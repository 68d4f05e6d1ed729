"""The time in which measured requests were sent, in windows of equal length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.analysis.request_log import RequestLog

WINDOWS = 10


class TimeWindows(NamedTuple):
    """From the first measured request to the last."""

    numbers: npt.NDArray[np.int64]
    """Shape (requests of the log,): the window that each was sent in, from 0; below 0: before the first one."""
    length_s: float
    """Of each window."""


def time_windows(log: RequestLog) -> TimeWindows | None:
    """None if there is no measured request."""
    sent = np.array([request.sent_ns for request in log.requests], dtype=np.int64)
    measured = sent[(log.rows["phase"] == "measure").to_numpy(dtype=bool)]
    if not len(measured):
        return None
    # Half-open windows, so that the last request is in the last one.
    span_ns = int(measured.max() - measured.min()) + 1
    return TimeWindows((sent - measured.min()) * WINDOWS // span_ns, span_ns / WINDOWS / 1e9)
