"""What is compared of two tables of requests, and that a difference is found where there is one and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from harness.compare.effect import Effect
from harness.compare.measures import compare_rows
from harness.compare.rows import Rows, in_all, pooled, same_request
from tests.compare.tables import changed, played, rows, started_at_once


def by_name(reference: Rows, other: Rows, is_paired: bool = True, number: int = 200) -> dict[str, Effect]:
    return {one.name: one for one in compare_rows(reference, other, is_paired=is_paired, number=number)}


def found(reference: Rows, other: Rows) -> list[str]:
    told = by_name(reference, other).values()
    return [effect.name for effect in told if effect.verdict in ("higher", "lower")]


@pytest.mark.parametrize("seed", range(4))
def test_a_ttft_that_is_5_percent_longer_is_found_with_2000_sessions(seed: int) -> None:
    told = by_name(played(seed, 100_000 + seed, 2_000), played(seed, 500_000 + seed, 2_000, slower=1.05))
    same, median = told["ttft_paired_ratio"], told["ttft_p50_ratio"]

    assert same.verdict == "higher"
    assert median.verdict in ("higher", "perhaps higher")
    assert [same.effect, median.effect] == pytest.approx([1.05, 1.05], abs=0.03)
    assert (same.detectable or 1) < 0.05
    assert told["tpot_p50_ratio"].verdict == told["hit_rate_diff"].verdict == "none"


def test_of_two_runs_of_the_same_nothing_is_found_in_19_of_20() -> None:
    wrong = [
        found(played(seed, 100_000 + seed, 2_000, 2), played(seed, 300_000 + seed, 2_000, 2)) for seed in range(20)
    ]

    assert sum(map(bool, wrong)) <= 1, wrong


def at_once(seed: int, sessions: int) -> dict[str, Effect]:
    """Two runs of the same that 16 users begin together."""
    ours, theirs = (
        started_at_once(played(seed, chance, sessions, 6), chance, 16) for chance in (seed + 50_000, seed + 70_000)
    )
    return by_name(ours, theirs)


def test_of_two_runs_that_all_users_begin_at_once_no_more_is_found_than_was_promised() -> None:
    """1 in 20: of 40 pairs more than 5 are wrong by chance in 1 of 70 cases; without the rule on moments nearly all."""
    pairs = [at_once(seed, 40) for seed in range(40)]
    wrong = [[one.name for one in told.values() if one.verdict in ("higher", "lower")] for told in pairs]

    assert sum(map(bool, wrong)) <= 5, wrong
    assert all(told["ttft_paired_ratio"].low is not None for told in pairs)


@pytest.mark.parametrize("seed", range(3))
def test_a_tail_that_the_start_made_is_one_moment_however_many_sessions_are_in_it(seed: int) -> None:
    told = at_once(seed, 200)

    assert told["ttft_p99_ratio"].effect is not None
    assert (told["ttft_p99_ratio"].low, told["ttft_p99_ratio"].verdict) == (None, "unknown")
    assert "separate moments, too few for an interval" in told["ttft_p99_ratio"].reason
    assert told["ttft_p50_ratio"].low is not None


def test_each_number_is_of_the_requests_that_it_is_named_after() -> None:
    # 100 sessions of a cold miss of 100 ms and a warm hit of 20 ms; on the other side 110 and 30.
    ours, theirs = (rows(np.tile(times, 100), 100) for times in ([100.0, 20.0], [110.0, 30.0]))
    told = by_name(ours, theirs)

    for name, ratio, requests in (("cold", 1.1, 100), ("warm", 1.5, 100), ("hit", 1.5, 100), ("miss", 1.1, 100)):
        effect = told[f"ttft_{name}_p50_ratio"]
        assert effect.effect == pytest.approx(ratio), name
        assert effect.requests == (requests, requests), name
    assert (told["ttft_p50_ratio"].reference, told["ttft_p50_ratio"].other) == (60.0, 70.0)
    assert told["ttft_paired_ratio"].effect == pytest.approx((1.1 * 1.5) ** 0.5, rel=0.02)  # between the two
    assert told["e2e_p90_ratio"].effect == pytest.approx(610 / 600)
    assert (told["hit_rate_diff"].reference, told["hit_rate_warm_diff"].other) == (0.4, 0.8)
    assert (told["failures_diff"].effect, told["failures_diff"].verdict) == (0.0, "none")
    # None of 200 failed: as Wilson has it, up to 1.88 % of all may; of a difference of two such both ends are as far.
    assert (told["failures_diff"].low, told["failures_diff"].high) == pytest.approx((-0.01885, 0.01885), abs=1e-5)
    assert not [name for name in told if "failed" in name]


def test_failures_stand_beside_the_times_of_successes_as_infinitely_slow() -> None:
    ours = rows(np.tile([100.0, 20.0], 100), 100)
    failed = np.arange(200) % 20 == 1  # one warm turn in ten
    told = by_name(ours, changed(ours, ok=~failed, ttft_ms=np.where(failed, np.nan, ours.column("ttft_ms"))))

    assert (told["ttft_p50_ratio"].requests, told["ttft_warm_p50_ratio"].requests) == ((200, 190), (100, 90))
    assert told["ttft_warm_p90_ratio"].effect == 1.0
    assert told["ttft_warm_p90_ratio+failed"].other == np.inf  # rank 89.1 of 0 to 99 lies next to a failure
    assert told["ttft_warm_p50_ratio+failed"].effect == 1.0
    assert (told["failures_diff"].effect, told["failures_diff"].verdict) == (0.05, "higher")
    assert "ttft_hit_p50_ratio+failed" not in told  # nobody knows whether it would have been a hit
    assert "ttft_cold_p50_ratio+failed" not in told  # none of them failed


def test_times_that_do_not_count_are_in_no_ratio_and_still_in_the_hit_rate() -> None:
    ours = rows(np.tile([100.0, 20.0], 100), 100)
    disturbed = changed(
        ours, counted=ours.session != 7, ttft_ms=np.where(ours.session == 7, 9e9, ours.column("ttft_ms"))
    )
    told = by_name(ours, disturbed)

    assert (told["ttft_p99_ratio"].requests, told["ttft_p99_ratio"].other) == ((200, 198), 100.0)
    assert told["hit_rate_diff"].requests == (200, 200)


def test_what_is_not_reported_is_neither_hit_nor_miss() -> None:
    ours = rows(np.tile([100.0, 20.0], 100), 100)
    silent = changed(ours, cached_tokens=np.full(200, np.nan))
    told = by_name(ours, silent)

    for name in ("ttft_hit_p50_ratio", "ttft_miss_p50_ratio"):
        assert (told[name].effect, told[name].reason) == (None, "no request of the other side has it")
    assert (told["hit_rate_diff"].effect, told["hit_rate_diff"].verdict) == (None, "unknown")
    assert told["hit_rate_diff"].reason == "no request of the other side reports it"


def test_of_too_few_sessions_or_requests_there_is_no_interval() -> None:
    nineteen, twenty = (rows(np.tile([100.0, 20.0], number), number) for number in (19, 20))
    few = by_name(nineteen, nineteen)
    assert {effect.low for effect in few.values()} == {None}
    assert few["ttft_p50_ratio"].effect == 1.0
    assert few["ttft_p50_ratio"].reason == "19 sessions of each side are too few for an interval"
    enough = by_name(twenty, twenty)
    assert enough["ttft_p50_ratio"].low == 1.0
    assert enough["ttft_p90_ratio"].reason.startswith("40 requests of each side are too few")


def test_sides_that_did_not_send_the_same_are_drawn_each_by_itself() -> None:
    """Then the spread of lengths is in the interval, and a paired comparison is far narrower."""
    ours, theirs = played(1, 2, 300), played(1, 3, 300)
    paired, apart = by_name(ours, theirs)["ttft_p50_ratio"], by_name(ours, theirs, is_paired=False)["ttft_p50_ratio"]

    assert paired.effect == apart.effect
    assert (paired.detectable or 0) < 0.8 * (apart.detectable or 0)
    assert "ttft_paired_ratio" not in by_name(ours, theirs, is_paired=False)
    by_name(ours, played(9, 3, 120), is_paired=False)  # of another number of sessions


@pytest.mark.parametrize("is_paired", [True, False])
def test_what_one_moment_made_slow_tells_less_than_as_much_that_is_spread(is_paired: bool) -> None:
    """One session in ten takes longer: all of them at the same time, or now and then."""
    ours, theirs = played(1, 2, 600), played(1, 3, 600)
    slow = {"at once": theirs.stretch // 3 == 2, "spread": theirs.session % 10 == 3}
    told = {
        how: by_name(
            ours,
            changed(theirs, ttft_ms=np.where(of, 4 * theirs.column("ttft_ms"), theirs.column("ttft_ms"))),
            is_paired,
        )
        for how, of in slow.items()
    }
    at_once, spread = (told[how]["ttft_p99_ratio"] for how in ("at once", "spread"))

    assert (at_once.effect or 0) > 1.5
    assert (spread.effect or 0) > 1.5
    assert at_once.widened > 1.2
    assert spread.widened == 1
    assert spread.verdict == "higher"
    assert at_once.verdict != "higher"
    assert told["at once"]["tpot_p50_ratio"].widened == 1


def test_only_what_all_runs_measured_is_compared_and_runs_of_a_side_are_pooled() -> None:
    ours = rows(np.arange(6.0), 3)  # sessions 0 to 2, turns 0 and 1
    theirs = rows(np.arange(4.0), 2).take(np.array([0, 1, 2]))  # without session 1, turn 1
    left, right = in_all([ours, theirs])

    assert list(zip(left.session, left.turn, strict=True)) == [(0, 0), (0, 1), (1, 0)]
    assert (left.column("ttft_ms") == right.column("ttft_ms")).all()
    both = pooled([left, left])
    assert by_name(both, left)["ttft_p50_ratio"].requests == (6, 3)
    assert len(in_all([ours, changed(ours, session=ours.session + 9)])[0]) == 0


def test_the_same_request_of_several_runs_has_their_geometric_mean() -> None:
    once, twice = (
        rows(np.array([10.0, 20.0]), 1),
        pooled([rows(np.array([10.0, 20.0]), 1), rows(np.array([40.0, 0.0]), 1)]),
    )
    ratios, places = same_request(once, twice, "ttft_ms")

    assert ratios == pytest.approx([2.0, 1.0])  # the root of 10 · 40; a time of 0 is none
    assert twice.turn[places].tolist() == [0, 1]
