from __future__ import annotations

from typing import Any

import pytest

from harness.collector import value
from harness.collector.metrics_page import parse
from harness.engines.base import Metric

PAGE = parse('new{a="1",b="x"} 2\nnew{a="1",b="y"} 3\nnew{a="2",b="x"} 10\nold 7\n')


def metric(names: tuple[str, ...], **more: Any) -> Metric:
    return Metric("cached_prompt_tokens", names, "counter", "cached tokens", **more)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (metric(("new", "old")), 15.0),
        (metric(("newer", "old")), 7.0),
        (metric(("new",), labels={"a": "1"}), 5.0),
        (metric(("new",), labels={"a": "1", "b": "y"}), 3.0),
        (metric(("new", "old"), labels={"a": "3"}), None),
        (metric(("new",), labels={"a": "3"}, absent_is_zero=True), 0.0),
        (metric(("newer",)), None),
        (metric(("newer",), absent_is_zero=True), 0.0),
    ],
)
def test_the_first_name_that_is_there_is_summed_over_its_labels(of: Metric, expected: float | None) -> None:
    assert value(of, PAGE) == expected


def test_a_page_that_was_not_read_says_nothing() -> None:
    assert value(metric(("new",), absent_is_zero=True), ()) is None
