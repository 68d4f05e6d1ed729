"""What a row of `harness_health` says: was the harness itself the bottleneck in its time?

docs/health.md tells what the limits mean for the figures of a run, and what they were measured by.
"""

from __future__ import annotations

from typing import Literal

Bottleneck = Literal["stall", "lag", "cpu"]
"""stall: something waited for the event loop for `STALL_MS` or longer; lag: half of all instants waited for `LAG_MS` or
longer; cpu: the process used a core up."""

STALL_MS = 100.0
LAG_MS = 10.0
CPU_SHARE = 0.9
SHORT_MS = 500.0
"""A row shorter than this, at the end of a load, has too few instants to judge by more than the latest of them."""


def bottleneck(
    span_ms: float, loop_lag_p50_ms: float | None, loop_lag_max_ms: float | None, cpu_share: float
) -> Bottleneck | None:
    """The first that holds; None: the harness kept up. The arguments are the columns of these names."""
    if loop_lag_max_ms is not None and loop_lag_max_ms >= STALL_MS:
        return "stall"
    if span_ms < SHORT_MS:
        return None
    if loop_lag_p50_ms is not None and loop_lag_p50_ms >= LAG_MS:
        return "lag"
    return "cpu" if cpu_share >= CPU_SHARE else None
