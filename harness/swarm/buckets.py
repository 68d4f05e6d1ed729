"""Times counted in buckets, each 1 % wider than the one before, so that counts of several processes can be added up.

A percentile is the geometric middle of the bucket that holds the value of its rank (the nearest one, ceil(share * n)),
so it is off by at most 0.5 % (sqrt(1.01) - 1). Times below 1 µs count as 1 µs.
"""

from __future__ import annotations

import math

GROWTH = 1.01
SHORTEST_MS = 1e-3

Buckets = dict[int, int]
"""Number of times in each bucket; bucket i holds those from GROWTH ** i to GROWTH ** (i + 1) ms."""

_PER_LOG = 1 / math.log(GROWTH)


def count(buckets: Buckets, time_ms: float) -> None:
    """One more time."""
    bucket = math.floor(math.log(max(time_ms, SHORTEST_MS)) * _PER_LOG)
    buckets[bucket] = buckets.get(bucket, 0) + 1


def add(buckets: Buckets, others: Buckets) -> None:
    """Count those of `others`, too."""
    for bucket, times in others.items():
        buckets[bucket] = buckets.get(bucket, 0) + times


def quantile(buckets: Buckets, share: float) -> float | None:
    """In ms; None: there are no times."""
    left = math.ceil(share * sum(buckets.values()))
    for bucket in sorted(buckets):
        left -= buckets[bucket]
        if left <= 0:
            return float(GROWTH ** (bucket + 0.5))
    return None
