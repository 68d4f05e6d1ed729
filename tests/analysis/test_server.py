"""What the engine's own metrics say beside the hit rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from harness.analysis import Run
from harness.analysis.pages import replicas
from harness.analysis.server import Counted, Gauged, ServerFigures, of_server
from harness.record.manifest import MetricNames, Phase
from tests.analysis.rows import Row, sample, scrape, target

MakeRun = Callable[..., Run]


def metric(meaning: str, name: str, kind: Literal["counter", "gauge"] = "gauge", **changes: Any) -> MetricNames:
    return MetricNames(meaning=meaning, names=(name,), kind=kind, counts=meaning, **changes)


METRICS = [
    metric("generated_tokens", "out_total", "counter"),
    metric("evicted_tokens", "evicted_total", "counter", absent_is_zero=True),
    metric("running_requests", "running"),
    metric("kv_usage", "usage"),
]
MEASURE = Phase(phase="measure", targets=("t",), start_ns=10, end_ns=40)


@pytest.fixture
def figures(make_run: MakeRun) -> Callable[..., ServerFigures]:
    def calculate(*scrapes: list[Row], phases: tuple[Phase, ...] = (MEASURE,)) -> ServerFigures:
        samples = [row for rows in scrapes for row in rows]
        run = make_run([], samples, targets=[target(metrics=METRICS)], phases=list(phases)).only_target()
        return of_server(run, replicas(run.samples, run.target))

    return calculate


Figures = Callable[..., ServerFigures]


def pages(**changes: Any) -> list[list[Row]]:
    """Four within the measured phase, one before and one after it, which show an idle engine."""
    return [
        scrape(time_ns, moment, {"out_total": out, "running": running, "usage": usage}, **changes)
        for time_ns, moment, out, running, usage in (
            (9, "warmup_end", 100, 0, 0.0),
            (10, "periodic", 100, 2, 0.25),
            (20, "periodic", 300, 4, 0.5),
            (30, "periodic", 600, 3, 0.75),
            (40, "periodic", 700, 3, 0.5),
            (41, "after", 750, 0, 0.0),
        )
    ]


def test_counters_are_told_by_what_they_grew_by(figures: Figures) -> None:
    found = figures(*pages())

    assert found.generated_tokens == Counted(650, None)
    assert found.evicted_tokens == Counted(0, None)


def test_gauges_are_told_by_peak_and_mean_of_the_measured_phase(figures: Figures) -> None:
    found = figures(*pages())

    # (2 + 4 + 3 + 3) / 4; with the two idle scrapes at the borders it would be 2.
    assert found.running_requests == Gauged(4, 3.0, 4, None)
    assert found.kv_usage == Gauged(0.75, 0.5, 4, None)


def test_a_failed_scrape_is_left_out(figures: Figures) -> None:
    found = figures(*pages(), scrape(25, "periodic", {"up": 0.0}, error="timed out"))

    assert found.running_requests == Gauged(4, 3.0, 4, None)


def test_requests_are_summed_over_replicas_and_the_fullest_one_counts(figures: Figures) -> None:
    def page(replica: str, time_ns: int, running: float, usage: float) -> list[Row]:
        return scrape(time_ns, "periodic", {"running": running, "usage": usage}, replica=replica)

    found = figures(
        page("a", 10, 1, 0.2),
        page("b", 11, 5, 0.9),
        page("a", 20, 3, 0.4),
        page("b", 21, 0, 0.1),
        page("a", 30, 2, 0.3),
    )

    # Known together from 11 on: 1 + 5, 3 + 5, 3 + 0, 2 + 0.
    assert found.running_requests == Gauged(8, 19 / 4, 4, None)
    assert found.kv_usage is not None
    assert found.kv_usage.peak == 0.9


def test_label_sets_of_one_page_are_taken_together_in_the_same_way(figures: Figures) -> None:
    def both(name: str, first: float, second: float) -> list[Row]:
        return [
            sample(name, first, 20, "periodic", labels={"engine": "0"}),
            sample(name, second, 20, "periodic", labels={"engine": "1"}),
        ]

    found = figures([*both("running", 2, 3), *both("usage", 0.25, 0.5)])

    assert found.running_requests == Gauged(5, 5.0, 1, None)
    assert found.kv_usage == Gauged(0.5, 0.5, 1, None)


def test_what_the_engine_has_no_metric_for_is_none(figures: Figures) -> None:
    found = figures(*pages())

    assert (found.waiting_requests, found.preemptions, found.external_cached_tokens) == (None, None, None)


def test_what_cannot_be_told_has_its_reason(figures: Figures) -> None:
    only_end = figures(pages()[-1])
    unmeasured = figures(*pages(), phases=())
    without_gauge = figures(*[[row for row in rows if row["name"] != "running"] for rows in pages()])

    assert only_end.generated_tokens == Counted(None, "t was not scraped at before")
    assert only_end.running_requests is not None
    assert only_end.running_requests.reason == "no scrape of the measured phase has running (running_requests)"
    assert unmeasured.kv_usage == Gauged(None, None, 0, "run.json does not say when the measured phase was")
    assert without_gauge.running_requests is not None
    assert without_gauge.running_requests.reason == "no scrape of the measured phase has running (running_requests)"
    assert figures().kv_usage == Gauged(None, None, 0, "no metrics were scraped")


def test_a_restart_makes_deltas_unknown_and_leaves_gauges(figures: Figures) -> None:
    scrapes = pages()
    scrapes[3] = [row | {"reset": True if row["name"] == "out_total" else None} for row in scrapes[3]]
    found = figures(*scrapes)

    assert found.generated_tokens is not None
    assert found.generated_tokens.value is None
    assert "was restarted between" in (found.generated_tokens.reason or "")
    assert found.running_requests == Gauged(4, 3.0, 4, None)
