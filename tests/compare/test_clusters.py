"""What is drawn as a whole: sessions of both sides at once or of each by itself, and stretches of time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.compare.clusters import of_sessions, of_time
from harness.compare.rows import pooled
from harness.statistics.moments import STRETCHES, stretches_of
from tests.compare.tables import rows

OURS = replace(rows(np.ones(6), 3), stretch=np.array([0, 1, 2, 3, 4, 5]))
THEIRS = replace(rows(np.ones(6), 3), stretch=np.array([9, 8, 7, 6, 5, 4]))


def test_a_session_of_both_sides_is_one_and_sub_agents_belong_to_theirs() -> None:
    sub_agent = replace(THEIRS, session=np.array([0, 0, 1, 1, 77, 77]))  # the root of 77 is 2
    clusters = of_sessions(OURS, sub_agent, is_paired=True)

    assert clusters.ours[0].tolist() == clusters.theirs[0].tolist() == [0, 0, 1, 1, 2, 2]
    assert all(ours is theirs and ours.shape[1] == 3 for ours, theirs in clusters.draws(5))


def test_sessions_of_different_workloads_are_drawn_each_by_themselves() -> None:
    clusters = of_sessions(OURS, THEIRS.take(THEIRS.session > 0), is_paired=False)

    assert clusters.theirs[0].tolist() == [0, 0, 1, 1]
    ((ours, theirs),) = clusters.draws(5)
    assert (ours.shape, theirs.shape) == ((5, 3), (5, 2))


def test_a_request_is_in_the_same_stretch_on_both_sides_once_by_each_of_their_clocks() -> None:
    backwards = THEIRS.take(np.arange(6)[::-1])
    by_ours, by_theirs = of_time(OURS, backwards, is_paired=True)

    assert by_ours.ours[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert by_ours.theirs[0].tolist() == [5, 4, 3, 2, 1, 0]
    assert by_theirs.ours[0].tolist() == [9, 8, 7, 6, 5, 4]
    assert by_theirs.sizes == (STRETCHES, STRETCHES)


def test_runs_that_are_pooled_share_no_time() -> None:
    both = pooled([OURS, OURS])
    (clusters,) = of_time(both, THEIRS, is_paired=False)

    assert clusters.ours[0].tolist() == [0, 1, 2, 3, 4, 5, 30, 31, 32, 33, 34, 35]
    assert clusters.sizes == (60, 30)


def test_the_measured_time_is_cut_into_equal_parts() -> None:
    due_ns = np.array([1_000, 1_000 + 299, 1_000 + 150, 1_009])

    assert stretches_of(due_ns).tolist() == [0, 29, 15, 0]
    assert stretches_of(np.array([5])).tolist() == [0]
    assert stretches_of(np.array([], dtype=np.int64)).tolist() == []
