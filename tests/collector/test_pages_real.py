"""The collector of pages against llama.cpp's own server."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import requests

from harness.collector import Row, Sample, open_collector, value
from harness.collector.scrape import scrape
from harness.embedded.process import free_port
from harness.embedded.server import RunningServer
from harness.engines.detect import connect
from harness.engines.target import Target
from tests.collector.scripted_pages import resets
from tests.collector.traffic import chat


def test_the_deltas_of_the_counters_are_what_the_requests_reported(llama_cpp: RunningServer) -> None:
    target = Target(url=llama_cpp.url)
    engine = connect(target)
    collector = open_collector(target, lambda _: None)

    def counts() -> dict[str, float]:
        assert collector.settle("check", engine.is_idle)
        return {metric.meaning: count(collector.samples, metric.meaning) for metric in engine.metrics}

    def count(samples: tuple[Sample, ...], meaning: str) -> float:
        [metric] = [metric for metric in engine.metrics if metric.meaning == meaning]
        told = value(metric, samples)
        assert told is not None
        return told

    before = counts()
    reported = chat(target.url, ["# one", "# two", "# one"])
    after = counts()
    delta = {meaning: after[meaning] - before[meaning] for meaning in before}
    assert reported.cached > 0
    assert delta["cached_prompt_tokens"] == reported.cached
    assert delta["computed_prompt_tokens"] == reported.prompt - reported.cached
    assert delta["generated_tokens"] == reported.output


def test_llama_cpp_marks_its_process(llama_cpp: RunningServer) -> None:
    page = f"{Target(url=llama_cpp.url).server_root}/metrics"
    first, second = (scrape(requests.Session(), page) for _ in range(2))
    assert first.start_mark is not None
    assert first.start_mark == second.start_mark


def test_a_server_that_was_killed_and_started_again_is_told(llama_cpp_server: Callable[..., RunningServer]) -> None:
    port = free_port()
    server = llama_cpp_server(port=port)
    rows: list[Row] = []
    collector = open_collector(Target(url=server.url), rows.extend)
    chat(server.url, ["# one"])
    collector.scrape_now("before")
    server.process.kill()
    server.process.wait()
    collector.scrape_now("periodic")
    server = llama_cpp_server(port=port)
    # More than the first process did, so that no counter falls.
    chat(server.url, ["# one", "# two", "# one"])
    gevent.sleep(0.1)
    collector.scrape_now("periodic")
    collector.scrape_now("after")
    ups = [row for row in rows if row["name"] == "up"]
    assert [row["value"] for row in ups] == [1.0, 0.0, 1.0, 1.0]
    assert "nothing listens" in ups[1]["error"]
    generated = [row["value"] for row in rows if row["name"] == "llamacpp:tokens_predicted_total"]
    assert generated == [2.0, 6.0, 6.0]
    assert resets(rows, "llamacpp:tokens_predicted_total") == [None, True, False]
    [restart] = collector.restarts
    assert (restart.replica, restart.after_ns, restart.before_ns) == (
        f"127.0.0.1:{port}",
        ups[0]["t_ns"],
        ups[2]["t_ns"],
    )
