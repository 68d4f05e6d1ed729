"""The collector of Prometheus, with a stand-in for the server."""

from __future__ import annotations

import itertools
import socket
import time
from typing import Any

import gevent
import pytest

from harness.collector import Row
from harness.collector.prometheus import PrometheusCollector
from harness.engines.target import Prometheus, Target
from harness.errors import TargetError
from tests.collector.scripted_pages import idle, moments, resets, values
from tests.collector.scripted_prometheus import ScriptedPrometheus
from tests.engines.scripted_server import Serve


def page(running: float, tokens: float) -> dict[str, float]:
    return {"running": running, "tokens_total": tokens}


def collect(url: str, fetch_every_s: float = 5.0, **described: Any) -> tuple[PrometheusCollector, list[Row]]:
    rows: list[Row] = []
    prometheus = Prometheus(url=url, selector={"job": "x"}, **described)
    target = Target(url="http://engine:8000", name="mine", prometheus=prometheus)
    return PrometheusCollector(target, prometheus, rows.extend, fetch_every_s), rows


def times(rows: list[Row]) -> list[int]:
    return [row["t_ns"] for row in rows if row["name"] == "up"]


def test_a_scrape_of_prometheus_becomes_the_rows_of_a_scrape_of_the_page(serve: Serve) -> None:
    url = ScriptedPrometheus([page(0, 3)]).serve(serve)
    collector, rows = collect(url)
    collector.scrape_now("before")
    border = [row for row in rows if row["moment"] == "before"]
    up, duration, *samples = border
    assert (up["name"], up["value"], up["error"], up["labels"]) == ("up", 1.0, None, {})
    assert (duration["name"], duration["value"]) == ("scrape_duration_seconds", 0.004)
    assert {(row["name"], row["family"], row["type"], row["value"], row["reset"]) for row in samples} == {
        ("running", "running", "gauge", 0.0, None),
        ("tokens_total", "tokens_total", "counter", 3.0, None),
    }
    assert {(row["target"], row["replica"], row["t_ns"]) for row in border} == {("mine", "engine:8000", up["t_ns"])}
    assert {sample.name: sample.value for sample in collector.samples} == page(0, 3)


@pytest.mark.parametrize("ahead_s", [0.0, -3.0, 3.0])
def test_a_border_waits_for_a_scrape_that_began_later_by_the_clock_of_prometheus(serve: Serve, ahead_s: float) -> None:
    prometheus = ScriptedPrometheus([page(0, 3)], ahead_s=ahead_s)
    collector, rows = collect(prometheus.serve(serve))
    collector.scrape_now("before")
    asked_ns = time.time_ns()
    collector.scrape_now("after")
    border_ns = times(rows)[moments(rows).index("after")]
    began_ns = border_ns - round(ahead_s * 1e9)
    assert asked_ns - 10_000_000 < began_ns <= time.time_ns()
    if ahead_s:
        way = "ahead of" if ahead_s > 0 else "behind"
        [note] = collector.notes
        assert f"is 3.0 s {way} this machine's" in note
    else:
        assert collector.notes == []


@pytest.mark.timing
@pytest.mark.parametrize("lateness_s", [0.0, 0.15])
def test_each_scrape_is_fetched_once_while_the_run_goes_on(serve: Serve, lateness_s: float) -> None:
    prometheus = ScriptedPrometheus([page(0, tokens) for tokens in range(50)], lateness_s=lateness_s, past=5)
    collector, rows = collect(prometheus.serve(serve), fetch_every_s=0.07)
    collector.scrape_now("before")
    collector.start()
    gevent.sleep(0.6)
    assert len(moments(rows)) >= 3, "rows come before the end, so that a killed run loses little"
    collector.stop()
    collector.scrape_now("after")
    first_ns, last_ns = times(rows)[0], times(rows)[-1]
    assert times(rows) == [at_ns for at_ns in prometheus.scrape_times_ns() if first_ns <= at_ns <= last_ns]
    tokens = values(rows, "tokens_total")
    assert tokens == [tokens[0] + number for number in range(len(tokens))]
    borders = [moment for moment in moments(rows) if moment != "periodic"]
    assert borders == ["before", "after"]


@pytest.mark.timing
def test_what_prometheus_scraped_while_it_could_not_be_asked_is_fetched_later(serve: Serve) -> None:
    prometheus = ScriptedPrometheus([page(0, 3)], interval_s=0.05)
    routes = {"down": False}
    answer = prometheus.answer
    prometheus.answer = lambda request: (400, "no") if routes["down"] else answer(request)  # type: ignore[method-assign]
    collector, rows = collect(prometheus.serve(serve), fetch_every_s=0.05)
    collector.scrape_now("before")
    collector.start()
    routes["down"] = True
    gevent.sleep(0.3)
    assert collector.reason is not None
    routes["down"] = False
    gevent.sleep(0.2)
    collector.stop()
    assert collector.reason is None
    assert times(rows) == [
        at_ns for at_ns in prometheus.scrape_times_ns() if times(rows)[0] <= at_ns <= times(rows)[-1]
    ]
    assert len(times(rows)) >= 8


def test_only_instant_queries_for_raw_samples_are_sent(serve: Serve) -> None:
    prometheus = ScriptedPrometheus([page(0, 3)])
    collector, _ = collect(prometheus.serve(serve))
    assert collector.settle("after", idle)
    forms = {query.split("{")[0].split("[")[0] for query in prometheus.queries}
    assert forms == {"time()", "timestamp(up", "up", ""}


def test_settling_takes_two_equal_scrapes_of_an_idle_engine(serve: Serve) -> None:
    pages = [page(0, 10), page(1, 10), page(1, 10), page(0, 10), page(0, 12), page(0, 12), page(0, 99)]
    collector, rows = collect(ScriptedPrometheus([*pages], interval_s=0.3).serve(serve))
    assert collector.settle("after", idle)
    border = moments(rows).index("after")
    assert moments(rows).count("after") == 1
    assert values(rows, "tokens_total")[border - 2 : border + 1] == [10, 12, 12]


def test_an_engine_that_stays_busy_ends_the_settling_and_the_reason_tells_the_bound(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.collector.prometheus.MARGIN_S", 0.5)
    url = ScriptedPrometheus([page(1, 10)], past=5).serve(serve)
    collector, rows = collect(url)
    assert not collector.settle("after", idle, timeout_s=0.1)
    assert collector.reason == (
        f"engine:8000 was not idle with its counters at rest within 1 s (Prometheus at {url} scrapes every 0.2 s)"
    )
    assert moments(rows)[-1] == "after"
    assert set(values(rows, "up")) == {1.0}
    assert len(collector.samples) == 2


def test_a_prometheus_that_stops_scraping_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.collector.prometheus.MARGIN_S", 0.2)
    prometheus = ScriptedPrometheus([page(0, 10)], past=5)
    url = prometheus.serve(serve)
    collector, rows = collect(url)
    collector.scrape_now("before")
    prometheus.stopped = True
    collector.scrape_now("after")
    assert collector.reason == (f"no scrape of engine:8000 came within 0.6 s (Prometheus at {url} scrapes every 0.2 s)")
    last = [row for row in rows if row["moment"] == "after"]
    assert [(row["name"], row["value"], row["replica"]) for row in last if row["name"] == "up"] == [
        ("up", 0.0, "engine:8000")
    ]
    assert last[0]["error"] == collector.reason
    assert collector.samples == ()
    assert not collector.available


def test_a_target_that_is_down_is_a_row_with_an_error_and_its_restart_is_told(serve: Serve) -> None:
    pages = [page(0, 10), page(0, 10), None, page(0, 4), page(0, 5)]
    collector, rows = collect(ScriptedPrometheus(pages, interval_s=0.15).serve(serve))
    collector.scrape_now("before")
    for _ in range(4):
        collector.scrape_now("periodic")
    down = "Prometheus could not scrape engine:8000"
    ups = [row for row in rows if row["name"] == "up"]
    assert {(row["value"], row["error"]) for row in ups} == {(1.0, None), (0.0, down)}
    assert resets(rows, "tokens_total").count(True) == 1
    assert len(collector.restarts) == 1


@pytest.mark.parametrize(
    ("answer", "token", "reason"),
    [
        (
            (401, "Unauthorized"),
            None,
            "Prometheus at {url} answered 401: it wants a token; name the environment variable that holds its token as "
            "api_key_env, under prometheus in the target file",
        ),
        ((403, ""), "KVSWARM_TOKEN", "Prometheus at {url} answered 403: it refuses the token in KVSWARM_TOKEN"),
        ((500, {"status": "error", "error": "broken"}), None, "Prometheus at {url} answered 500 (broken)"),
        ((200, "<html>"), None, "what answers at {url} does not speak the API of Prometheus"),
        ((200, {"data": 1}), None, "what answers at {url} does not speak the API of Prometheus"),
    ],
)
def test_a_prometheus_that_refuses_is_a_sentence_and_a_row(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, answer: Any, token: str | None, reason: str
) -> None:
    monkeypatch.setenv("KVSWARM_TOKEN", "secret")
    prometheus = ScriptedPrometheus([page(0, 1)])
    prometheus.answer = lambda request: answer  # type: ignore[method-assign]
    url = prometheus.serve(serve)
    collector, rows = collect(url, api_key_env=token)
    assert not collector.settle("before", idle)
    collector.start()
    collector.stop()
    assert collector.reason == reason.format(url=url)
    assert [(row["name"], row["value"], row["replica"]) for row in rows] == [
        ("up", 0.0, None),
        ("scrape_duration_seconds", 0.0, None),
    ]
    assert rows[0]["error"] == collector.reason
    assert not collector.available


def test_a_prometheus_that_is_not_there_or_hangs_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        collector, _ = collect(url, timeout_s=0.1)
        collector.scrape_now("before")
        assert collector.reason == f"Prometheus at {url} does not answer: no answer in time"
    collector, _ = collect(url)
    collector.scrape_now("before")
    assert collector.reason is not None
    assert collector.reason.startswith(f"Prometheus at {url} does not answer: nothing listens at ")


def test_the_token_goes_to_prometheus_and_the_key_of_the_target_never(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVSWARM_TOKEN", "for-prometheus")
    monkeypatch.setenv("KVSWARM_KEY", "for-the-engine")
    for token_env, sent in (("KVSWARM_TOKEN", "Bearer for-prometheus"), (None, None)):
        prometheus = ScriptedPrometheus([page(0, 3)])
        url = prometheus.serve(serve)
        described = Prometheus(url=url, selector={"job": "x"}, api_key_env=token_env)
        # On the very host and port of the target, as behind a reverse proxy.
        target = Target(url=url, api_key_env="KVSWARM_KEY", headers={"X-Team": "search"}, prometheus=described)
        PrometheusCollector(target, described, lambda _: None).scrape_now("before")
        assert {headers.get("authorization") for headers in prometheus.headers} == {sent}
        assert all("x-team" not in headers for headers in prometheus.headers)


def test_a_token_that_is_missing_is_told_at_once() -> None:
    with pytest.raises(TargetError, match="KVSWARM_NO_SUCH_TOKEN, which is not set"):
        collect("http://127.0.0.1:1", api_key_env="KVSWARM_NO_SUCH_TOKEN")


def test_the_selector_is_quoted(serve: Serve) -> None:
    prometheus = ScriptedPrometheus([page(0, 3)])
    described = Prometheus(url=prometheus.serve(serve), selector={"job": 'a"b\\c', "site": "lab"})
    target = Target(url="http://engine:8000", prometheus=described)
    PrometheusCollector(target, described, lambda _: None).scrape_now("before")
    assert any(query.startswith('up{job="a\\"b\\\\c",site="lab"}[') for query in prometheus.queries)


def test_rows_that_cannot_be_kept_are_an_error_at_the_end(serve: Serve) -> None:
    def full(_: list[Row]) -> None:
        raise OSError("disk full")

    described = Prometheus(url=ScriptedPrometheus([page(0, 3)], interval_s=0.05).serve(serve), selector={"job": "x"})
    target = Target(url="http://engine:8000", prometheus=described)
    collector = PrometheusCollector(target, described, full, fetch_every_s=0.05)
    collector.start()
    gevent.sleep(0.4)
    with pytest.raises(OSError, match="disk full"):
        collector.stop()


def test_types_are_asked_for_again_only_for_names_that_are_new(serve: Serve) -> None:
    asked = itertools.count()
    prometheus = ScriptedPrometheus([{"odd": 1.0}])
    answer = prometheus.answer

    def counting(request: dict[str, Any]) -> Any:
        if request["path"].startswith("/api/v1/metadata"):
            next(asked)
        return answer(request)

    prometheus.answer = counting  # type: ignore[method-assign]
    collector, rows = collect(prometheus.serve(serve))
    for _ in range(3):
        collector.scrape_now("periodic")
    assert next(asked) == 1
    assert {row["type"] for row in rows if row["name"] == "odd"} == {"unknown"}
