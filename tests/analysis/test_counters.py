from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.analysis import Run
from harness.analysis.counters import CounterRate, of_counters
from harness.record.manifest import HitCounters
from tests.analysis.rows import Row, sample, scrape

MakeRun = Callable[..., Run]


@pytest.fixture
def rate(make_run: MakeRun) -> Callable[..., CounterRate]:
    def calculate(*scrapes: list[Row], counters: HitCounters | None = None) -> CounterRate:
        run = make_run([], [row for rows in scrapes for row in rows])
        return of_counters(run.server_metrics, counters or run.manifest.hit_counters)

    return calculate


Rate = Callable[..., CounterRate]


def test_it_is_what_the_counters_grew_by_since_the_warm_up(rate: Rate) -> None:
    counted = rate(
        scrape(1, "before", {"hits_total": 0, "queries_total": 0}),
        scrape(2, "warmup_end", {"hits_total": 10, "queries_total": 100}),
        scrape(3, "periodic", {"hits_total": 20, "queries_total": 400}),
        scrape(4, "after", {"hits_total": 60, "queries_total": 300 + 100}),
    )

    assert (counted.cached_tokens, counted.prompt_tokens, counted.rate) == (50, 300, 50 / 300)
    assert (counted.since, counted.since_ns, counted.reason) == ("warmup_end", 2, None)


def test_without_a_scrape_after_the_warm_up_it_is_since_before(rate: Rate) -> None:
    counted = rate(
        scrape(1, "before", {"hits_total": 1, "queries_total": 2}),
        scrape(4, "after", {"hits_total": 2, "queries_total": 6}),
    )

    assert (counted.rate, counted.since) == (0.25, "before")


def test_the_last_scrape_of_a_moment_counts(rate: Rate) -> None:
    counted = rate(
        scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}),
        scrape(2, "warmup_end", {"hits_total": 5, "queries_total": 10}),
        scrape(3, "after", {"hits_total": 6, "queries_total": 10}),
        scrape(4, "after", {"hits_total": 7, "queries_total": 20}),
    )

    assert (counted.cached_tokens, counted.prompt_tokens) == (2, 10)


def test_labels_and_replicas_are_summed_each_from_its_own_start(rate: Rate) -> None:
    scrapes = [
        [
            *scrape(time_ns, moment, {"queries_total": queries}, replica=replica),
            sample("hits_total", device, time_ns, moment, replica=replica, labels={"source": "device"}),
            sample("hits_total", host, time_ns, moment, replica=replica, labels={"source": "host"}),
        ]
        for time_ns, moment, replica, queries, device, host in (
            (10, "warmup_end", "a", 100, 10, 1),
            (11, "warmup_end", "b", 1000, 500, 0),
            (20, "after", "a", 150, 30, 5),
            (21, "after", "b", 1050, 501, 0),
        )
    ]
    counted = rate(*scrapes)

    assert (counted.cached_tokens, counted.prompt_tokens) == (20 + 4 + 1, 50 + 50)


def test_a_series_that_appears_during_the_run_counts_from_zero(rate: Rate) -> None:
    counted = rate(
        scrape(1, "warmup_end", {"queries_total": 100}),
        scrape(2, "after", {"queries_total": 200, "hits_total": 30}),
    )

    assert (counted.cached_tokens, counted.prompt_tokens) == (30, 100)


def test_computed_tokens_alone_are_not_the_denominator(rate: Rate) -> None:
    counters = HitCounters(cached=("hits_total",), prompt=("queries_total",), prompt_includes_cached=False)
    counted = rate(
        scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}),
        scrape(2, "after", {"hits_total": 30, "queries_total": 70}),
        counters=counters,
    )

    assert (counted.prompt_tokens, counted.rate) == (100, 0.3)


def test_the_first_name_that_the_page_has_is_used(rate: Rate) -> None:
    counters = HitCounters(
        cached=("new_hits", "hits_total"), prompt=("queries_total", "old"), prompt_includes_cached=True
    )
    pages = {"hits_total": 1.0, "queries_total": 2.0, "old": 3.0}
    counted = rate(
        scrape(1, "warmup_end", pages),
        scrape(2, "after", {"hits_total": 4, "queries_total": 8, "old": 1000}),
        counters=counters,
    )

    assert (counted.cached_tokens, counted.prompt_tokens) == (3, 6)


def failed(t_ns: int, moment: str) -> list[Row]:
    return scrape(t_ns, moment, {"up": 0.0}, error="connection refused")


GOOD_START = scrape(1, "warmup_end", {"hits_total": 10, "queries_total": 100})
GOOD_END = scrape(9, "after", {"hits_total": 20, "queries_total": 200})


@pytest.mark.parametrize(
    ("scrapes", "reason"),
    [
        ([], "no metrics were scraped"),
        ([GOOD_START], "http://t/v1 was not scraped at after"),
        ([GOOD_END], "http://t/v1 was not scraped at before"),
        ([failed(1, "warmup_end"), GOOD_END], "scrape of http://t/v1 at warmup_end failed: connection refused"),
        ([GOOD_START, failed(9, "after")], "scrape of http://t/v1 at after failed: connection refused"),
        ([GOOD_START, scrape(9, "after", {"queries_total": 200})], "has no counter hits_total"),
        (
            [
                GOOD_START,
                scrape(5, "periodic", {"hits_total": 3, "queries_total": 150}),
                GOOD_END,
            ],
            "hits_total of http://t/v1 fell during the run",
        ),
        (
            [
                GOOD_START,
                [*scrape(9, "after", {"queries_total": 200}), sample("hits_total", 20, 9, "after", reset=True)],
            ],
            "hits_total of http://t/v1 was reset",
        ),
        (
            [
                [*GOOD_START, sample("hits_total", 5, 1, "warmup_end", labels={"source": "host"})],
                GOOD_END,
            ],
            "a series of hits_total vanished",
        ),
        ([GOOD_START, scrape(9, "after", {"hits_total": 20, "queries_total": float("nan")})], "not a number"),
        ([GOOD_START, scrape(9, "after", {"hits_total": 10, "queries_total": 100})], "did not move"),
    ],
)
def test_what_the_counters_cannot_tell_is_unknown_with_its_reason(
    rate: Rate, scrapes: list[list[Row]], reason: str
) -> None:
    counted = rate(*scrapes)

    assert counted.rate is None
    assert reason in (counted.reason or "")


def test_one_replica_that_cannot_be_read_makes_the_sum_unknown(rate: Rate) -> None:
    of_b = [
        scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}, replica="b"),
        scrape(9, "after", {"up": 0.0}, replica="b", error="timed out"),
    ]
    of_a = [[row | {"replica": "a"} for row in rows] for rows in (GOOD_START, GOOD_END)]
    counted = rate(*of_a, *of_b)

    assert counted.rate is None
    assert counted.reason == "the scrape of http://t/v1 replica b at after failed: timed out"


def test_a_restart_before_the_measured_phase_does_no_harm(rate: Rate) -> None:
    start = [row | {"reset": True} if row["name"] != "up" else row for row in GOOD_START]

    assert rate(start, GOOD_END).cached_tokens == 10


def test_a_failed_scrape_in_between_does_no_harm(rate: Rate) -> None:
    assert rate(GOOD_START, failed(5, "periodic"), GOOD_END).rate == 0.1


def test_an_engine_without_counters_says_so(make_run: MakeRun) -> None:
    assert of_counters(make_run([]).server_metrics, None).reason == "the engine has no such counters"
