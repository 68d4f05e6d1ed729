from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.analysis import Run
from harness.analysis.counters import CounterRate, of_counters
from harness.analysis.pages import replicas
from harness.record.manifest import TargetRecord
from tests.analysis.rows import CACHED, PROMPT, Row, sample, scrape, target

MakeRun = Callable[..., Run]


@pytest.fixture
def rate(make_run: MakeRun) -> Callable[..., CounterRate]:
    def calculate(*scrapes: list[Row], of: TargetRecord | None = None) -> CounterRate:
        run = make_run([], [row for rows in scrapes for row in rows], targets=[of or target()]).only_target()
        return of_counters(replicas(run.samples, run.target), run.target)

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
    assert (counted.since, counted.since_ns, counted.reason, counted.stretches) == ("warmup_end", 2, None, ())


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

    assert (counted.cached_tokens, counted.prompt_tokens, counted.since_ns) == (20 + 4 + 1, 50 + 50, 10)


def test_only_series_with_the_labels_of_the_metric_count(rate: Rate) -> None:
    cached = CACHED.model_copy(update={"labels": {"source": "device"}})
    scrapes = [
        [
            *scrape(time_ns, moment, {"queries_total": queries}),
            sample("hits_total", device, time_ns, moment, labels={"source": "device", "rank": "0"}),
            sample("hits_total", 1_000 * device, time_ns, moment, labels={"source": "host", "rank": "0"}),
        ]
        for time_ns, moment, queries, device in ((1, "warmup_end", 100, 10), (2, "after", 200, 40))
    ]

    assert rate(*scrapes, of=target(metrics=[cached, PROMPT])).cached_tokens == 30


def test_a_label_set_that_appears_during_the_run_counts_from_zero(rate: Rate) -> None:
    counted = rate(
        scrape(1, "warmup_end", {"queries_total": 100, "hits_total": 5}),
        [
            *scrape(2, "after", {"queries_total": 200, "hits_total": 6}),
            sample("hits_total", 30, 2, "after", labels={"source": "host"}),
        ],
    )

    assert (counted.cached_tokens, counted.prompt_tokens) == (1 + 30, 100)


FROM_THE_FIRST_HIT = target(metrics=[CACHED.model_copy(update={"absent_is_zero": True}), PROMPT])


def test_a_counter_made_at_its_first_event_is_zero_before_it(rate: Rate) -> None:
    without = scrape(1, "warmup_end", {"queries_total": 100})
    counted = rate(without, scrape(2, "after", {"queries_total": 200, "hits_total": 30}), of=FROM_THE_FIRST_HIT)
    never = rate(without, scrape(2, "after", {"queries_total": 200}), of=FROM_THE_FIRST_HIT)

    assert (counted.cached_tokens, counted.prompt_tokens) == (30, 100)
    assert (never.cached_tokens, never.prompt_tokens, never.rate) == (0, 100, 0.0)


def test_a_counter_that_always_is_there_is_unknown_where_it_is_not(rate: Rate) -> None:
    without = scrape(1, "warmup_end", {"queries_total": 100})
    counted = rate(without, scrape(2, "after", {"queries_total": 200, "hits_total": 30}))

    assert counted.rate is None
    assert counted.reason == "the first page of t has no counter hits_total (cached tokens)"


def test_a_page_with_nothing_of_the_engine_is_never_zero(rate: Rate) -> None:
    foreign = scrape(1, "warmup_end", {"process_cpu_seconds_total": 1})
    counted = rate(foreign, scrape(2, "after", {"queries_total": 200, "hits_total": 30}), of=FROM_THE_FIRST_HIT)

    assert counted.reason == "the first page of t shows none of the engine's metrics"


def test_computed_tokens_alone_are_not_the_denominator(rate: Rate) -> None:
    computed = PROMPT.model_copy(update={"meaning": "computed_prompt_tokens"})
    counted = rate(
        scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 0}),
        scrape(2, "after", {"hits_total": 30, "queries_total": 70}),
        of=target(metrics=[CACHED, computed]),
    )

    assert (counted.prompt_tokens, counted.rate) == (100, 0.3)


def test_the_first_name_that_the_last_page_has_is_used_on_both_ends(rate: Rate) -> None:
    cached = CACHED.model_copy(update={"names": ("new_hits", "hits_total")})
    prompt = PROMPT.model_copy(update={"names": ("queries_total", "old")})
    of = target(metrics=[cached, prompt])
    counted = rate(
        scrape(1, "warmup_end", {"hits_total": 1, "queries_total": 2, "old": 3}),
        scrape(2, "after", {"hits_total": 4, "queries_total": 8, "old": 1000}),
        of=of,
    )
    renamed = rate(
        scrape(1, "warmup_end", {"hits_total": 1, "queries_total": 2}),
        scrape(2, "after", {"new_hits": 4, "queries_total": 8}),
        of=of,
    )

    assert (counted.cached_tokens, counted.prompt_tokens) == (3, 6)
    assert renamed.reason == "the first page of t has no counter new_hits (cached tokens)"


def failed(t_ns: int, moment: str) -> list[Row]:
    return scrape(t_ns, moment, {"up": 0.0}, error="connection refused")


GOOD_START = scrape(1, "warmup_end", {"hits_total": 10, "queries_total": 100})
GOOD_END = scrape(9, "after", {"hits_total": 20, "queries_total": 200})


@pytest.mark.parametrize(
    ("scrapes", "reason"),
    [
        ([], "no metrics were scraped"),
        ([GOOD_START], "t was not scraped at after"),
        ([GOOD_END], "t was not scraped at before"),
        ([failed(1, "warmup_end"), GOOD_END], "the scrape of t at warmup_end failed: connection refused"),
        ([GOOD_START, failed(9, "after")], "the scrape of t at after failed: connection refused"),
        ([GOOD_START, scrape(9, "after", {"queries_total": 200})], "has no counter hits_total"),
        (
            [GOOD_START, scrape(5, "periodic", {"hits_total": 3, "queries_total": 150}), GOOD_END],
            "hits_total of t fell",
        ),
        (
            [[*GOOD_START, sample("hits_total", 5, 1, "warmup_end", labels={"source": "host"})], GOOD_END],
            "a series of hits_total vanished",
        ),
        ([GOOD_START, scrape(9, "after", {"hits_total": 20, "queries_total": float("nan")})], "not a number"),
        (
            [GOOD_START, scrape(9, "after", {"hits_total": 10, "queries_total": 100})],
            "the counters did not move (prompt tokens)",
        ),
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
    assert counted.reason == "the scrape of t replica b at after failed: timed out"


def test_a_failed_scrape_in_between_does_no_harm(rate: Rate) -> None:
    assert rate(GOOD_START, failed(5, "periodic"), GOOD_END).rate == 0.1


HOW = {"metrics": "start it with --metrics"}


def test_without_metrics_the_reason_says_how_to_have_them(rate: Rate) -> None:
    no_page = rate(failed(1, "warmup_end"), failed(9, "after"), of=target(advice=HOW))
    foreign = [scrape(t_ns, moment, {"python_info": 1}) for t_ns, moment in ((1, "warmup_end"), (9, "after"))]
    nothing = "no scrape brought any of the engine's metrics"

    assert no_page.reason == f"{nothing}: connection refused; start it with --metrics"
    assert rate(*foreign, of=target(advice=HOW)).reason == f"{nothing}; start it with --metrics"
    assert rate(*foreign).reason == nothing


def test_a_scrape_that_fails_once_is_no_reason_to_start_the_server_anew(rate: Rate) -> None:
    counted = rate(GOOD_START, failed(9, "after"), of=target(advice=HOW))

    assert counted.reason == "the scrape of t at after failed: connection refused"


def test_a_target_that_names_no_page_says_so(rate: Rate) -> None:
    of = target(target={"url": "http://t/v1", "metrics_urls": [], "prometheus": None}, advice=HOW)

    assert rate(of=of).reason == "the target names no metrics page"


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        ([], "kvswarm knows no metrics of e"),
        ([PROMPT], "the engine does not count cached tokens"),
        ([CACHED], "the engine does not count prompt tokens"),
    ],
)
def test_an_engine_without_such_counters_says_so(rate: Rate, metrics: list[object], reason: str) -> None:
    assert rate(GOOD_START, GOOD_END, of=target(metrics=metrics)).reason == reason


def test_a_page_that_rounds_says_how_far_the_growth_may_be_off(rate: Rate) -> None:
    short = target(metrics=[metric.model_copy(update={"digits": 3}) for metric in (CACHED, PROMPT)])
    counted = rate(
        scrape(1, "warmup_end", {"hits_total": 0, "queries_total": 999}),
        scrape(2, "after", {"hits_total": 1_230, "queries_total": 45_600}),
        of=short,
    )
    # 1,230 may be 1,225 to 1,235, and 45,600 anything from 45,550 to 45,650; 0 and 999 are what they are.
    assert (counted.cached_tokens, counted.cached_rounding) == (1_230, 5)
    assert (counted.prompt_tokens, counted.prompt_rounding) == (44_601, 50)
