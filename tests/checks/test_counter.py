"""The engine's own count: what a settled page says, and None for whatever is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from harness.checks.counter import cached_counter
from harness.collector import Collector, Sample
from harness.engines.base import Metric
from harness.engines.openai import OpenAIEngine
from harness.engines.target import Prometheus, Target

URL = "http://127.0.0.1:1/v1"


class Engine(OpenAIEngine):
    metrics = (
        Metric("cached_prompt_tokens", ("hits_total", "old_hits_total"), "counter", "hits"),
        Metric("external_cached_tokens", ("external_total",), "counter", "hits of another tier"),
    )


@dataclass
class Page:
    """A collector that finds these values, if it settles."""

    values: dict[str, float]
    settles: bool = True
    settled: int = 0
    reason: str | None = "it is broken"

    def settle(self, moment: str, is_idle: Any) -> bool:
        assert (moment, is_idle({})) == ("check", None)
        self.settled += 1
        return self.settles

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(Sample(name, name, "counter", {}, value) for name, value in self.values.items())


def count(
    page: Page,
    engine: type[OpenAIEngine] = Engine,
    note: Callable[[str], object] = lambda sentence: None,
    **fields: Any,
) -> int | None:
    return cached_counter(cast(Collector, page), engine(Target(url=URL, **fields), "m"), note)()


def test_count_of_a_settled_page() -> None:
    assert count(Page({"hits_total": 511.0})) == 511
    assert count(Page({"old_hits_total": 7.0, "other": 1.0})) == 7


def test_an_external_tier_counts_too() -> None:
    assert count(Page({"hits_total": 500.0, "external_total": 11.0})) == 511


def test_unknown_is_not_zero() -> None:
    assert count(Page({"other": 1.0})) is None
    assert count(Page({})) is None
    assert count(Page({"hits_total": 511.0}, settles=False)) is None


def test_pages_that_cannot_be_read_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    assert count(Page({"hits_total": 511.0}, settles=False), note=notes.append) is None
    monkeypatch.setattr("harness.checks.counter.SLOW_S", -1.0)
    assert count(Page({"hits_total": 511.0}), note=notes.append) is None
    assert notes == [
        "the engine's own counter is left out: it is broken",
        "the engine's own counter is left out: reading it takes 0 s",
    ]
    count(Page({}, settles=False), OpenAIEngine, notes.append)
    count(Page({}, settles=False), note=notes.append, metrics_urls=())
    assert len(notes) == 2  # nothing is left out where there is nothing


class Rounding(OpenAIEngine):
    metrics = (Metric("cached_prompt_tokens", ("hits_total",), "counter", "hits", digits=6),)


def test_a_count_that_the_page_rounds_is_not_known() -> None:
    assert count(Page({"hits_total": 999_999.0}), Rounding) == 999_999
    assert count(Page({"hits_total": 1_037_680.0}), Rounding) is None


def test_pages_are_not_read_for_nothing() -> None:
    page = Page({"hits_total": 511.0})
    assert count(page, OpenAIEngine) is None
    prometheus = Prometheus(url="http://127.0.0.1:9090", selector={"job": "toy"})
    assert count(page, prometheus=prometheus) is None
    assert page.settled == 0
