"""What is told of single requests: cost of prefill, hits against misses, by turn, by reuse distance."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from statistics import median

import numpy as np
import pytest

from harness.analysis import load
from harness.analysis.request_log import read_log
from harness.report.distances import reuse
from harness.report.pieces import LAST_TURN
from harness.report.prefill import Fit, fit, prefill
from harness.report.source import Source
from harness.report.tails import tails
from harness.report.turns import turns
from tests.analysis.rows import second
from tests.report.conftest import MakeRecord, sent

MakeSource = Callable[..., Source]


def test_the_cost_of_prefill_is_the_median_slope_of_all_pairs() -> None:
    generator = random.Random(1)
    tokens = [generator.randrange(2_000) for _ in range(60)]
    times = [30 + 0.12 * one + generator.gauss(0, 4) for one in tokens]
    times[:5] = [9_000.0] * 5  # outliers move it little
    found = fit(tokens, times, [number // 3 for number in range(60)], 500_000)
    assert isinstance(found, Fit)
    slopes = [(t - u) / (x - y) for (x, t), (y, u) in combinations(zip(tokens, times, strict=True), 2) if x != y]
    assert found.ms_per_1000 == pytest.approx(1_000 * median(slopes))
    assert found.low < 120 < found.high
    assert found.base_ms == pytest.approx(median(t - median(slopes) * x for x, t in zip(tokens, times, strict=True)))
    assert found.saved_s == pytest.approx(500_000 * median(slopes) / 1_000)  # ms a token times tokens
    assert found.saved_low_s == pytest.approx(found.low * 500 / 1_000)


@pytest.mark.parametrize(
    ("tokens", "times", "sessions", "reason"),
    [
        ([1, 2], [1.0, 2.0], [0, 1], "2 requests report what they hit; it takes 20"),
        (range(0, 4_000, 100), range(40), [0] * 40, "of 1 sessions; it takes 5"),
        ([10, 11] * 20, range(40), range(40), "computed as many tokens as each other (within 1)"),
        (range(0, 4_000, 100), [7.0, 5.0, 9.0, 1.0] * 10, range(40), "cannot be told from 0"),
    ],
)
def test_where_the_cost_cannot_be_told_it_says_why(
    tokens: list[int], times: list[float], sessions: list[int], reason: str
) -> None:
    found = fit(list(tokens), list(times), list(sessions), 1)
    assert isinstance(found, str)
    assert reason in found


def test_only_so_many_points_are_drawn_and_the_same_again(source: MakeSource) -> None:
    rows = [sent(number, 0, 0, 1_000 + 10 * number, 500, 50.0 + number) for number in range(30)]
    rows += [sent(99, 0, 0, 10, None, 1.0), sent(98, 0, 0, 10, 0, 1.0, status="timeout")]
    made = source(rows)
    found = prefill(made, points=20)
    assert (len(found.points), found.requests) == (20, 30)
    assert found == prefill(made, points=20)
    assert found.fit is not None
    assert found.fit.ms_per_1000 == pytest.approx(100.0)  # 1 ms for every 10 tokens
    assert found.fit.saved_s == pytest.approx(30 * 500 * 0.1 / 1_000)  # of all requests, not of the points


def test_hits_and_misses_are_parted_at_half_of_the_prompt(source: MakeSource) -> None:
    rows = [sent(0, 0, 0, 100, 50, 10.0), sent(1, 0, 0, 100, 49, 20.0), sent(2, 0, 0, 100, None, 30.0)]
    rows += [sent(3, 0, 0, 100, 50, 99.0, status="timeout"), sent(4, 0, 0, 100, 50, 99.0, phase="ramp")]
    assert [(tail.which, tail.n, tail.p50_ms, tail.curve) for tail in tails(source(rows), "ttft_ms")] == [
        ("hit", 1, 10.0, ((0.0, 10.0),)),
        ("miss", 1, 20.0, ((0.0, 20.0),)),
        ("not told", 1, 30.0, ((0.0, 30.0),)),
    ]


def test_the_curve_is_of_exact_quantiles_and_ends_with_the_longest(source: MakeSource) -> None:
    values = [float(one) for one in random.Random(2).sample(range(1, 100_000), 400)]
    (tail,) = tails(source([sent(n, 0, 0, 100, 0, value) for n, value in enumerate(values)]), "tpot_ms")
    shares = [share for share, _ in tail.curve[:-1]]
    assert [value for _, value in tail.curve[:-1]] == pytest.approx(np.quantile(np.array(values) / 10, shares).tolist())
    assert tail.curve[-1] == (1 - 1 / 400, max(values) / 10)
    assert tail.p99_ms == pytest.approx(np.quantile(values, 0.99) / 10)


def test_times_leave_out_what_the_harness_spoilt_and_tokens_do_not(source: MakeSource) -> None:
    rows = [sent(0, 0, 0, 100, 0, 10.0), sent(0, 1, 5, 100, 80, 90.0)]
    tables = (rows, (), [second(105, cpu_share=0.95)])
    cold, warm = turns(source(*tables))
    assert (cold.timed, cold.ttft_p50_ms, warm.timed, warm.ttft_p50_ms) == (1, 10.0, 0, None)
    assert (warm.requests, warm.rate) == (1, 0.8)
    assert turns(source(*tables, all_requests=True))[1].ttft_p50_ms == 90.0
    assert [tail.n for tail in tails(source(*tables), "ttft_ms")] == [1]


def test_late_turns_are_taken_together(source: MakeSource) -> None:
    rows = [sent(0, turn, turn, 100, 10 * (turn > LAST_TURN), 10.0 + turn) for turn in (0, LAST_TURN, LAST_TURN + 2)]
    first, late = turns(source(rows))
    assert (first.name, late.name, late.requests, late.ttft_p50_ms) == (
        "0",
        f"{LAST_TURN} and later",
        2,
        11.0 + LAST_TURN,
    )
    assert late.rate == 0.05


def test_tokens_are_told_by_what_was_sent_since_they_were_sent_last(make_record: MakeRecord) -> None:
    def of(number: int, path: list[int], cached: int) -> dict[str, object]:
        return sent(number, 0, number, 64 * len(path), cached, 10.0, path=path, path_tokens=[64] * len(path))

    # A, A+B, C, A again. The blocks of A lie 16, 32, 48 and 64 tokens back for A+B; after C it is 80, 96 and 112, and
    # the last block of a prompt cannot hit. The engine had all of A the first time, and its first block the second.
    run = load(make_record([of(0, [1], 0), of(1, [1, 2], 64), of(2, [3], 0), of(3, [1], 16)])).only_target()
    found = reuse(read_log(run), granularity_tokens=16)
    assert found is not None
    assert found.block_tokens == 16
    by_end = {round(one.to_tokens): (one.tokens, one.cached_tokens) for one in found.distances}
    assert by_end == {16: (16, 16), 32: (16, 16), 64: (32, 32), 91: (16, 16), 128: (32, 0)}
    assert found.first_tokens == 48 + 48 + 48  # of A, B and C, without the last block of each prompt
    assert found.curve[-1][1] == pytest.approx(112 / 320)


def test_without_what_was_hit_there_are_no_distances(make_record: MakeRecord) -> None:
    assert reuse(read_log(load(make_record([sent(0, 0, 0, 64, None, 10.0)])).only_target()), 16) is None
