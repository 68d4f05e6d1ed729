from __future__ import annotations

from typing import Any

import pandas as pd

from harness.analysis.hit_rate import of_requests


def requests(*rows: tuple[Any, Any, str]) -> pd.DataFrame:
    cached, prompt, status = zip(*rows, strict=True) if rows else ((), (), ())
    return pd.DataFrame(
        {
            "cached_tokens": pd.array(cached, dtype="Int32"),
            "prompt_tokens": pd.array(prompt, dtype="Int32"),
            "status": pd.array(status, dtype="str"),
        }
    )


def test_it_is_the_ratio_of_sums_and_not_the_mean_of_ratios() -> None:
    # Mean of ratios: (0.9 + 0.1) / 2 = 0.5. Ratio of sums: (90 + 100) / 1100.
    hits = of_requests(requests((90, 100, "ok"), (100, 1000, "ok")))

    assert hits.rate == 190 / 1100
    assert (hits.cached_tokens, hits.prompt_tokens) == (190, 1100)


def test_what_was_not_reported_is_left_out_on_both_sides() -> None:
    hits = of_requests(requests((50, 100, "ok"), (None, 900, "ok"), (70, None, "ok"), (None, None, "timeout")))

    assert hits.rate == 0.5
    assert (hits.reporting, hits.requests, hits.ok_reporting, hits.ok) == (1, 4, 1, 3)
    assert (hits.cached_unknown, hits.ok_cached_unknown) == (2, 1)


def test_none_cached_is_zero_and_not_reported_is_not() -> None:
    none = of_requests(requests((0, 100, "ok"), (0, 50, "ok")))
    unreported = of_requests(requests((None, 100, "ok")))

    assert (none.rate, none.cached_tokens) == (0.0, 0)
    assert (unreported.rate, unreported.cached_tokens, unreported.prompt_tokens) == (None, None, None)


def test_the_three_states_are_counted() -> None:
    hits = of_requests(
        requests((0, 10, "ok"), (3, 10, "ok"), (4, None, "ok"), (None, 10, "ok"), (None, None, "refused"))
    )

    assert (hits.cached_none, hits.cached_some, hits.cached_unknown) == (1, 2, 2)


def test_a_failed_request_that_reports_both_counts_too() -> None:
    hits = of_requests(requests((10, 20, "ok"), (0, 20, "truncated")))

    assert hits.rate == 0.25
    assert (hits.reporting, hits.ok_reporting, hits.ok) == (2, 1, 1)


def test_of_no_requests_nothing_is_known() -> None:
    assert of_requests(requests()).rate is None
    assert of_requests(requests((0, 0, "ok"))).rate is None
