from __future__ import annotations

import pytest

from harness.record.bottleneck import bottleneck


@pytest.mark.parametrize(
    ("span_ms", "p50_ms", "max_ms", "cpu_share", "why"),
    [
        (1_000.0, 0.2, 8.0, 0.30, None),
        # Up to the limits, and no further.
        (1_000.0, 9.9, 99.9, 0.89, None),
        (1_000.0, 0.2, 100.0, 0.05, "stall"),
        (1_000.0, 10.0, 40.0, 0.05, "lag"),
        (1_000.0, 0.2, 8.0, 0.90, "cpu"),
        # The first that holds.
        (5_200.0, 2_400.0, 5_000.0, 1.00, "stall"),
        (1_000.0, 12.0, 60.0, 1.00, "lag"),
        # Two or three instants at the end of a load tell a stall, and no more.
        (80.0, 30.0, 60.0, 1.00, None),
        (80.0, 150.0, 150.0, 1.00, "stall"),
        (10.0, None, None, 1.00, None),
    ],
)
def test_the_harness_was_the_bottleneck(
    span_ms: float, p50_ms: float | None, max_ms: float | None, cpu_share: float, why: str | None
) -> None:
    assert bottleneck(span_ms, p50_ms, max_ms, cpu_share) == why
