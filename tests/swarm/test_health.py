"""The rows about the harness itself: how late the event loop is, what the collector and the processor do."""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Any

import gevent
import pyarrow.parquet as pq
import pytest

from harness.swarm.health import CollectorPauses, HealthWatch, Ticks

MS = 1_000_000


def late_ms(*wakes_ms: float) -> tuple[float | None, float | None]:
    """Median and maximum that a loop has which comes round at these times; instants are due at 50, 100, 150, ... ms."""
    ticks = Ticks(0)
    for wake_ms in wakes_ms:
        ticks.meet(round(wake_ms * MS))
    return ticks.take()


@pytest.mark.parametrize(
    ("wakes_ms", "lateness_ms"),
    [
        ([50.0, 100.5, 151.0], (0.5, 1.0)),
        # Woken a little early is not late.
        ([49.6], (0.0, 0.0)),
        # Woken late, the next instant is no later for it.
        ([60.0, 100.0, 150.0], (0.0, 10.0)),
        # A stall until 210 ms: the instants 50, 100, 150 and 200 waited 160, 110, 60 and 10 ms.
        ([210.0], (85.0, 160.0)),
        ([210.0, 250.0], (60.0, 160.0)),
        ([], (None, None)),
    ],
)
def test_every_instant_counts_with_how_late_the_loop_came_to_it(
    wakes_ms: list[float], lateness_ms: tuple[float | None, float | None]
) -> None:
    assert late_ms(*wakes_ms) == lateness_ms


def test_the_next_instant_is_waited_for_and_what_was_told_is_told_once() -> None:
    ticks = Ticks(1_000 * MS)
    assert ticks.wait_s(1_000 * MS) == 0.05
    ticks.meet(1_210 * MS)
    assert ticks.wait_s(1_210 * MS) == 0.04
    assert ticks.wait_s(1_260 * MS) == 0.0
    assert ticks.take() == (85.0, 160.0)
    assert ticks.take() == (None, None)


def test_the_collector_is_watched_until_the_end() -> None:
    before = list(gc.callbacks)
    pauses = CollectorPauses()
    gc.collect()
    gc.collect()
    found = pauses.take()
    assert len(found) >= 2
    assert min(found) >= 0
    pauses.close()
    gc.collect()
    assert pauses.take() == []
    assert gc.callbacks == before


def rows(folder: Path, watch: HealthWatch) -> list[dict[str, Any]]:
    watch.flush()
    return [row for name, _ in watch.parts for row in pq.read_table(folder / name).to_pylist()]


def test_a_loop_that_is_held_up_has_it_in_its_row(tmp_path: Path) -> None:
    began_ns = time.time_ns()
    watch = HealthWatch("r1", 1, 3, str(tmp_path), lambda: {"live_sessions": 4, "streams": 2, "rows_waiting": 9})
    gevent.sleep(0.03)
    stalled_ns = time.monotonic_ns()
    while time.monotonic_ns() - stalled_ns < 1_100 * MS:
        pass
    gc.collect()
    watch.count_socket_error()
    gevent.sleep(0.06)
    watch.close()
    first, *rest = rows(tmp_path, watch)
    ((name, n),) = watch.parts

    assert name == "harness_health/part-1-0003-00000.parquet"
    assert n == 1 + len(rest)
    assert (first["run_id"], first["worker"]) == ("r1", 3)
    assert (first["live_sessions"], first["streams"], first["rows_waiting"]) == (4, 2, 9)
    # An instant was due at the latest 50 ms after the stall began.
    assert first["loop_lag_max_ms"] >= 1_050
    assert 0 < first["loop_lag_p50_ms"] <= first["loop_lag_max_ms"]
    assert first["span_ms"] >= 1_100
    assert first["cpu_share"] > 0
    assert sum(row["socket_errors"] for row in (first, *rest)) == 1
    assert sum(row["gc_pauses"] for row in (first, *rest)) >= 1
    assert first["gc_pause_ms"] >= first["gc_longest_ms"] >= 0
    assert began_ns <= first["t_ns"] <= time.time_ns()
    # The rows of a process follow each other.
    for one, following in zip((first, *rest), rest, strict=False):
        assert following["t_ns"] > one["t_ns"]


def test_a_stall_right_before_the_end_is_not_lost(tmp_path: Path) -> None:
    watch = HealthWatch("r1", 0, 0, str(tmp_path))
    stalled_ns = time.monotonic_ns()
    while time.monotonic_ns() - stalled_ns < 200 * MS:
        pass
    watch.close()
    (row,) = rows(tmp_path, watch)
    assert row["loop_lag_max_ms"] >= 100


def test_the_master_has_no_load(tmp_path: Path) -> None:
    watch = HealthWatch("r1", 0, -1, str(tmp_path))
    watch.close()
    (row,) = rows(tmp_path, watch)
    assert watch.parts == [("harness_health/part-0-master-00000.parquet", 1)]
    assert (row["worker"], row["live_sessions"], row["streams"], row["rows_waiting"]) == (-1, None, None, None)
    # It ended before the first instant.
    assert (row["loop_lag_p50_ms"], row["loop_lag_max_ms"]) == (None, None)
