"""What stands on the axis of time: bins, hit rates, what client and server saw, and the harness's own health."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.report import series
from harness.report.hits import Rate, by_counters, by_requests
from harness.report.pieces import BINS, TimeBins
from harness.report.source import Source
from harness.report.watch import Marked, watch
from tests.analysis.rows import request, second
from tests.report.conftest import METRICS, RUNNING, S, scrapes, sent

MakeSource = Callable[..., Source]


@pytest.mark.parametrize(
    ("span_s", "width_s", "count"),
    [(0.2, 1, 1), (20, 1, 20), (60, 1, 60), (61, 2, 31), (3_600, 60, 60), (10_000_000, 10_000_000 / BINS, BINS)],
)
def test_time_is_cut_into_at_most_sixty_bins_of_a_round_width(span_s: float, width_s: float, count: int) -> None:
    bins = TimeBins.over(5 * S, 5 * S + round(span_s * S))
    assert (round(bins.width_s, 3), bins.count) == (round(width_s, 3), count)


def test_time_begins_with_the_first_measured_request_and_ends_with_the_last_answer(source: MakeSource) -> None:
    rows = [sent(0, 0, 3, 10, 0, 50.0), sent(0, 1, 6, 10, 0, 50.0), sent(1, 0, 0, 10, 0, 50.0, phase="ramp")]
    bins = source(rows).bins
    assert bins is not None
    assert (bins.start_ns, bins.count) == (103 * S, 4)  # 103 to 107: the last one ends after a second


def test_nothing_was_sent(source: MakeSource) -> None:
    assert source([request(t_send=None, status="refused")]).bins is None


def test_the_hit_rate_of_a_bin_is_a_ratio_of_sums_over_those_that_report_both(source: MakeSource) -> None:
    made = source(
        [
            sent(0, 0, 0.0, 100, 0, 50.0),
            sent(1, 0, 0.5, 300, 200, 50.0),
            sent(2, 0, 0.9, 500, None, 50.0),
            sent(3, 0, 2.0, 100, None, 50.0),
        ]
    )
    assert made.bins is not None
    assert by_requests(made, made.bins) == [Rate(0, 1, 0.5, 400), Rate(2, 3, None, 0)]


def test_the_hit_rate_of_counters_survives_a_restart(source: MakeSource) -> None:
    samples = [
        *scrapes("queries_total", {0: 1_000, 1: 1_100, 2: 1_300, 2.5: 0, 4: 150}),
        *scrapes("hits_total", {0: 500, 1: 550, 2: 700, 2.5: 0, 4: 0}),
    ]
    made = source([sent(0, 0, 0, 10, 0, 50.0), sent(0, 1, 3, 10, 0, 50.0)], samples)
    assert made.bins is not None
    rates = {rate.start_s: (rate.rate, rate.prompt_tokens) for rate in by_counters(made, made.bins, METRICS)}
    # The last stretch grew by 150 in the 1.5 s after the restart, evenly: 50 in its first half second.
    assert rates == {0: (0.5, 100), 1: (0.75, 200), 2: (0.0, 50), 3: (0.0, 100)}


def test_an_engine_that_does_not_count_has_no_rate(source: MakeSource) -> None:
    made = source([sent(0, 0, 0, 10, 0, 50.0)])
    assert made.bins is not None
    assert by_counters(made, made.bins, []) == by_counters(made, made.bins, METRICS) == []


def test_what_the_client_saw(source: MakeSource) -> None:
    made = source(
        [sent(0, 0, 0, 10, 0, 100.0), sent(1, 0, 0.5, 10, 0, 200.0), sent(0, 1, 2, 10, 0, 40.0)]
    )  # each lasts a second
    assert made.bins is not None
    p50, p90 = series.ttft(made, made.bins)
    assert p50.points == ((0.5, 150.0), (1.5, None), (2.5, 40.0))
    assert p90.values == pytest.approx([190.0, 40.0])
    assert [value for _, value in series.requests_a_second(made, made.bins).points] == [2, 0, 1]
    requests, sessions = series.in_flight(made, made.bins)
    assert requests.points == ((1, 2.0), (2, 0.0), (3, 0.0))  # ends lie in the bin that begins with them
    assert sessions.points == ((1, 2.0), (2, 1.0), (3, 0.0))


def test_what_the_server_saw(source: MakeSource) -> None:
    samples = [
        *scrapes("running", {0: 1, 1.2: 2, 1.8: 3}, type="gauge", replica="a"),
        *scrapes("running", {0: 10, 1.5: 20}, type="gauge", replica="b"),
        *scrapes("kv", {0: 0.25, 1: 0.5}, type="gauge", replica="a"),
        *scrapes("kv", {0: 0.75, 1: 0.25}, type="gauge", replica="b"),
        *scrapes("queries_total", {0: 0, 1: 100, 2: 100}),
        *scrapes("hits_total", {0: 0, 1: 30, 2: 30}),
        *scrapes("made_total", {0: 0, 1: 8, 2: 24}),
    ]
    made = source([sent(0, 0, 0, 10, 0, 50.0), sent(0, 1, 0.9, 10, 0, 50.0)], samples)
    assert made.bins is not None
    gauges = series.gauges(made, made.bins, METRICS)
    assert gauges["running_requests"].values == [11, 23]  # summed over replicas, the latest of each
    assert gauges["kv_usage"].values == [0.75, 0.5]  # of the fullest
    prefill, decode = series.token_rates(made, made.bins, METRICS)
    assert (prefill.values, decode.values) == ([70, 0], [8, 16])
    assert series.gauges(made, made.bins, [RUNNING]).keys() == {"running_requests"}


def test_seconds_in_which_the_harness_was_the_bottleneck_are_marked(source: MakeSource) -> None:
    health = [second(100), second(101, cpu_share=0.95), second(101, worker=-1, cpu_share=1.0), second(90, cpu_share=1)]
    rows = [sent(0, 0, 0, 10, 0, 50.0, late_ms=4.0), sent(0, 1, 1.5, 10, 0, 50.0)]
    made = source(rows, (), health)
    assert made.bins is not None
    found = watch(made, made.bins)
    assert found.marked == (Marked(1.0, 2.0, "cpu", 0),)  # not the master's, and none before the first request
    assert [(line.name, line.values) for line in found.lag] == [
        ("loop, median", [0.2, 0.2]),
        ("loop, most", [3.0, 3.0]),
        ("requests late, p99", [4.0, 0.5]),  # of all requests: this is about the harness
    ]
    assert found.cpu[0].values == [0.1, 0.95]
    assert watch(source(rows), made.bins).cpu == ()  # it was not recorded
