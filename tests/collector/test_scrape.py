from __future__ import annotations

import socket
import time
from typing import Any

import pytest
import requests

from harness.collector.scrape import Scrape, scrape
from tests.engines.scripted_server import Serve


def scrape_of(url: str) -> Scrape:
    return scrape(requests.Session(), url)


def test_a_scrape_holds_the_samples_and_its_times(serve: Serve) -> None:
    asked: list[dict[str, str]] = []

    def answer(request: dict[str, Any]) -> str:
        asked.append(request["headers"])
        time.sleep(0.05)
        return "a 1\n"

    before_ns = time.time_ns()
    result = scrape_of(serve({"GET /metrics": answer}) + "/metrics")
    assert [(sample.name, sample.value) for sample in result.samples] == [("a", 1.0)]
    assert (result.error, result.is_absent) == (None, False)
    assert before_ns <= result.t_ns <= time.time_ns() - 50_000_000
    assert 50 <= result.duration_ms <= (time.time_ns() - before_ns) / 1e6
    assert asked[0]["accept"] == "text/plain;version=0.0.4"
    assert asked[0]["connection"] == "close"


NO_METRICS = (
    ": there are no server metrics; start llama-server with --metrics, SGLang with --enable-metrics, "
    "or give metrics_urls in a target file"
)


@pytest.mark.parametrize(
    ("answer", "error", "is_absent"),
    [
        ((404, "Not Found"), "GET {url} answered 404 (Not Found)" + NO_METRICS, True),
        (
            (501, {"error": {"message": "This server does not support metrics endpoint. Start it with `--metrics`"}}),
            "GET {url} answered 501 (This server does not support metrics endpoint. Start it with `--metrics`)"
            + NO_METRICS,
            True,
        ),
        ((500, ""), "GET {url} answered 500 (an empty body)", False),
        ((401, {"error": {"message": "Invalid API Key"}}), "GET {url} answered 401 (Invalid API Key)", False),
        ((200, "<html>"), "what GET {url} answered is no Prometheus metrics page: invalid metric name:<html>", False),
        ((200, "# TYPE a"), "what GET {url} answered is no Prometheus metrics page: a line is cut short", False),
        ((200, "a{, ==} 1"), "what GET {url} answered is no Prometheus metrics page: a line is cut short", False),
    ],
)
def test_a_failed_scrape_says_why(serve: Serve, answer: tuple[int, Any], error: str, is_absent: bool) -> None:
    url = serve({"GET /metrics": answer}) + "/metrics"
    result = scrape_of(url)
    assert (result.samples, result.error, result.is_absent) == ((), error.format(url=url), is_absent)


def test_a_page_that_is_not_utf8_is_an_error(serve: Serve) -> None:
    result = scrape_of(serve({"GET /metrics": b"# HELP a \xff\na 1\n"}) + "/metrics")
    assert result.error is not None
    assert "no Prometheus metrics page: 'utf-8' codec can't decode" in result.error


def test_a_server_that_is_gone_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
    result = scrape_of(url)
    assert result.error is not None
    assert result.error.startswith(f"GET {url} failed: nothing listens at 127.0.0.1:")
    assert not result.is_absent


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.collector.scrape.TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
        assert scrape_of(url).error == f"GET {url} failed: no answer in time"
