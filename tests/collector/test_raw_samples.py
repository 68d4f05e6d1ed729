from __future__ import annotations

import math
from typing import Any

import pytest

from harness.collector.metrics_page import Sample
from harness.collector.raw_samples import by_replica, family_and_type, guessed, replica_key
from harness.collector.scrape import Scrape

A = {"job": "x", "instance": "a:1", "site": "lab"}
FAMILIES = {name: (name, "counter") for name in ("n", "rule", "up2")}


def series(name: str, values: dict[float, Any], **labels: str) -> dict[str, Any]:
    return {
        "metric": {"__name__": name, **A, **labels},
        "values": [[at_s, str(value)] for at_s, value in values.items()],
    }


def scrapes(answer: list[dict[str, Any]], after_ms: int = 0) -> list[Scrape]:
    [(key, samples)] = by_replica(answer, pause=lambda: None).items()
    assert key == replica_key(A)
    return list(samples.scrapes(after_ms, FAMILIES))


def test_samples_of_one_time_are_one_scrape() -> None:
    answer = [
        series("n", {10.001: 5, 11.001: 6}, k="v"),
        series("up", {10.001: 1, 11.001: 1}),
        series("scrape_duration_seconds", {10.001: 0.25, 11.001: 0.5}),
        series("scrape_samples_scraped", {10.001: 7, 11.001: 7}),
    ]
    assert scrapes(answer) == [
        Scrape(10_001_000_000, 250.0, (Sample("n", "n", "counter", {"k": "v"}, 5.0),), None),
        Scrape(11_001_000_000, 500.0, (Sample("n", "n", "counter", {"k": "v"}, 6.0),), None),
    ]
    assert [scrape.t_ns for scrape in scrapes(answer, after_ms=10_001)] == [11_001_000_000]


def test_a_series_that_ends_or_begins_is_in_the_scrapes_that_have_it() -> None:
    answer = [series("up", {1: 1, 2: 1, 3: 1}), series("n", {1: 5}, k="old"), series("n", {3: 1}, k="new")]
    assert [[sample.labels for sample in scrape.samples] for scrape in scrapes(answer)] == [
        [{"k": "old"}],
        [],
        [{"k": "new"}],
    ]


def test_a_scrape_that_failed_has_an_error_and_no_samples() -> None:
    [scrape] = scrapes([series("up", {1: 0}), series("scrape_duration_seconds", {1: 10})])
    assert scrape == Scrape(10**9, 10_000.0, (), "Prometheus could not scrape a:1")


def test_results_of_rules_are_no_samples_of_a_page() -> None:
    answer = [series("up", {1: 1}), series("rule", {1.3: 5}), {"metric": {"__name__": "sum", "job": "x"}, "values": []}]
    assert [scrape.samples for scrape in scrapes(answer)] == [()]


def test_values_that_are_no_numbers_come_along() -> None:
    [scrape] = scrapes([series("up", {1: 1}), series("n", {1: "NaN"}, k="1"), series("n", {1: "+Inf"}, k="2")])
    nan, infinite = (sample.value for sample in scrape.samples)
    assert math.isnan(nan)
    assert infinite == math.inf


def test_labels_of_the_page_have_their_old_names() -> None:
    answer = [series("up", {1: 1}), series("n", {1: 5}, exported_job="own", exported_other="stays", model="m")]
    assert [sample.labels for sample in scrapes(answer)[0].samples] == [
        {"job": "own", "exported_other": "stays", "model": "m"}
    ]


def test_replicas_are_kept_apart() -> None:
    other = {"job": "x", "instance": "b:1"}
    answer = [
        series("up", {1: 1}),
        {"metric": {"__name__": "up", **other}, "values": [[2, "1"]]},
        series("n", {1: 5}),
        {"metric": {"__name__": "n", **other}, "values": [[2, "7"]]},
    ]
    found = {
        key: [sample.value for scrape in samples.scrapes(0, FAMILIES) for sample in scrape.samples]
        for key, samples in by_replica(answer, pause=lambda: None).items()
    }
    assert found == {replica_key(A): [5.0], replica_key(other): [7.0]}


TYPES = {
    "a_total": "counter",
    "b": "counter",
    "h": "histogram",
    "s": "summary",
    "g_count": "gauge",
    "i": "info",
    "tokens_total": "histogram",
    "n_max": "counter",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a_total", ("a_total", "counter")),
        ("b_total", ("b_total", "counter")),
        ("b_created", ("b_created", "gauge")),
        ("n_max", ("n_max", "counter")),
        ("h_bucket", ("h", "histogram")),
        ("h_sum", ("h", "histogram")),
        ("h_count", ("h", "histogram")),
        ("s", ("s", "summary")),
        ("s_count", ("s", "summary")),
        ("g_count", ("g_count", "gauge")),
        ("i_info", ("i_info", "gauge")),
        ("tokens_total_bucket", ("tokens_total", "histogram")),
        ("x_total", None),
        ("x", None),
    ],
)
def test_family_and_type_are_those_of_a_page(name: str, expected: tuple[str, str] | None) -> None:
    assert family_and_type(name, TYPES) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x_total", ("x_total", "counter")),
        ("h_bucket", ("h", "histogram")),
        ("h_sum", ("h", "histogram")),
        ("h_count", ("h", "histogram")),
        ("y_count", ("y_count", "unknown")),
        ("y", ("y", "unknown")),
    ],
)
def test_without_a_type_the_name_tells_what_it_can(name: str, expected: tuple[str, str]) -> None:
    assert guessed(name, ["x_total", "h_bucket", "h_sum", "h_count", "y_count", "y"]) == expected
