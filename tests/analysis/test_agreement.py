from __future__ import annotations

from collections.abc import Callable

from harness.analysis import Run
from harness.analysis.agreement import Agreement, agreement
from harness.analysis.counters import CounterRate
from tests.analysis.rows import Row, request

MakeRun = Callable[..., Run]


def compare(
    make_run: MakeRun, rows: list[Row], cached: int | None, prompt: int | None, since: str = "warmup_end"
) -> Agreement:
    counted = CounterRate(None, cached, prompt, since, 50, None)
    return agreement(make_run(rows).requests, counted)


def test_equal_means_equal_to_the_token(make_run: MakeRun) -> None:
    rows = [request(cached_tokens=3, prompt_tokens=10), request(cached_tokens=0, prompt_tokens=7)]

    assert compare(make_run, rows, 3, 17).sentence() == "exactly equal"


def test_a_difference_is_told_in_tokens_and_direction(make_run: MakeRun) -> None:
    rows = [request(cached_tokens=3, prompt_tokens=2_000)]
    found = compare(make_run, rows, 2, 4_000)

    assert (found.cached.difference, found.prompt.difference) == (-1, 2_000)
    assert found.sentence() == "cached: counters 1 tokens fewer; prompt: counters 2,000 tokens more"


def test_requests_of_any_status_count_if_they_were_sent(make_run: MakeRun) -> None:
    rows = [
        request(cached_tokens=1, prompt_tokens=10),
        request(status="cancelled", cached_tokens=2, prompt_tokens=20),
        request(status="timeout"),
        request(status="refused", t_send=None),
    ]
    found = compare(make_run, rows, 3, 40)

    assert found.requests == 3
    assert (found.prompt.requests, found.prompt.unknown_requests, found.prompt.difference) == (30, 1, 10)
    assert found.sentence() == "cached: equal; prompt: counters 10 tokens more (1 of 3 requests report no count)"


def test_since_the_warm_up_the_requests_of_the_load_count(make_run: MakeRun) -> None:
    rows = [
        request(phase="warmup", cached_tokens=9, prompt_tokens=99),
        request(phase="ramp", cached_tokens=2, prompt_tokens=20),
        request(cached_tokens=1, prompt_tokens=10),
    ]

    assert compare(make_run, rows, 3, 30).sentence() == "exactly equal"


def test_since_before_all_requests_sent_after_that_scrape_count(make_run: MakeRun) -> None:
    rows = [
        request(phase="check", t_send=49, cached_tokens=500, prompt_tokens=500),
        request(phase="warmup", t_send=50, cached_tokens=9, prompt_tokens=90),
        request(t_send=60, cached_tokens=1, prompt_tokens=10),
    ]

    assert compare(make_run, rows, 10, 100, since="before").sentence() == "exactly equal"


def test_without_counters_or_reports_it_says_why_nothing_can_be_compared(make_run: MakeRun) -> None:
    reported = make_run([request(cached_tokens=1, prompt_tokens=2)]).requests
    no_counters = CounterRate(None, None, None, None, None, "no metrics were scraped")

    assert agreement(reported, no_counters).sentence() == "cannot be compared: no metrics were scraped"
    assert compare(make_run, [request()], 1, 2).sentence() == "cannot be compared: no request reports its tokens"
    assert compare(make_run, [], 0, 0).sentence() == "cannot be compared: no request reports its tokens"


def test_tokens_from_an_external_cache_are_named_where_the_two_differ(make_run: MakeRun) -> None:
    requests = make_run([request(cached_tokens=1_500, prompt_tokens=2_000)]).requests
    apart = agreement(requests, CounterRate(0.0, 300, 2_000, "warmup_end", 50, None), external_cached_tokens=1_200)
    equal = agreement(requests, CounterRate(0.0, 1_500, 2_000, "warmup_end", 50, None), external_cached_tokens=1_200)

    assert apart.cached.difference == -1_200
    assert apart.sentence() == (
        "cached: counters 1,200 tokens fewer; prompt: equal; "
        "1,200 cached tokens from an external cache are counted apart"
    )
    assert equal.sentence() == "exactly equal"


def test_a_difference_within_the_pages_rounding_is_none(make_run: MakeRun) -> None:
    requests = make_run([request(cached_tokens=1_000, prompt_tokens=2_000)]).requests
    within = CounterRate(None, 1_004, 1_950, "warmup_end", 50, None, cached_rounding=5, prompt_rounding=50)
    beyond = CounterRate(None, 1_006, 1_950, "warmup_end", 50, None, cached_rounding=5, prompt_rounding=50)

    assert agreement(requests, within).sentence() == "equal within the rounding of the metrics page, 50 tokens"
    assert agreement(requests, beyond).sentence() == "cached: counters 6 tokens more; prompt: equal"
