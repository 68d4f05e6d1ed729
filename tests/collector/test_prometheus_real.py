"""The collector of a real Prometheus that scrapes llama.cpp's own server, beside the collector of its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import gevent
import pytest

from harness.collector import Collector, Row, open_collector
from harness.embedded.process import free_port
from harness.embedded.server import RunningServer
from harness.engines.detect import connect
from harness.engines.target import Prometheus, Target
from tests.collector.real_prometheus import ask, running_prometheus
from tests.collector.scripted_pages import moments, resets, values
from tests.collector.traffic import chat
from tests.engines.scripted_server import Serve

CACHED, COMPUTED = "llamacpp:prompt_tokens_cached_total", "llamacpp:prompt_tokens_total"
PAGES = ["vllm/07-metrics-after.body.txt", "sglang/41-metrics-end.body.txt"]
Start = Callable[..., RunningServer]


def through(prometheus: str, job: str, url: str) -> Target:
    """A target whose own metrics page is not to be touched."""
    described = Prometheus(url=prometheus, selector={"job": job})
    return Target(url=url, metrics_urls=("http://127.0.0.1:1/never",), prometheus=described)


def host(server: RunningServer) -> str:
    return server.url.removeprefix("http://").removesuffix("/v1")


def at(rows: list[Row], moment: str, replica: str | None = None) -> dict[tuple[str, str], Row]:
    """(name, labels) -> the row of the last scrape of `moment`."""
    found = [row for row in rows if row["moment"] == moment and replica in (None, row["replica"])]
    last_ns = max(row["t_ns"] for row in found)
    return {(row["name"], str(sorted(row["labels"].items()))): row for row in found if row["t_ns"] == last_ns}


def test_both_collectors_see_the_same_growth_of_every_counter(llama_cpp_server: Start, tmp_path: Path) -> None:
    server = llama_cpp_server()
    engine = connect(Target(url=server.url))
    chat(server.url, ["# zero"])
    with running_prometheus(tmp_path, {"engine": [host(server)]}) as url:
        rows: tuple[list[Row], list[Row]] = ([], [])
        collectors = (
            open_collector(Target(url=server.url), rows[0].extend),
            open_collector(through(url, "engine", server.url), rows[1].extend),
        )
        assert all(collector.settle("before", engine.is_idle) for collector in collectors)
        for collector in collectors:
            collector.start()
        reported = chat(server.url, ["# one", "# two", "# one"])
        gevent.sleep(2.5)
        for collector in collectors:
            collector.stop()
        assert all(collector.settle("after", engine.is_idle) for collector in collectors)
        first_ns, last_ns = (row["t_ns"] for row in (rows[1][0], rows[1][-1]))
        raw = ask(url, "up[60s]")[0]["values"]

    before, after = ([at(of, moment) for of in rows] for moment in ("before", "after"))
    assert before[0].keys() == before[1].keys()
    for key, row in after[0].items():
        other = after[1][key]
        names = ("target", "replica", "name", "family", "type", "labels", "error")
        assert {name: row[name] for name in names} == {name: other[name] for name in names}
        if row["type"] == "counter":
            assert row["value"] - before[0][key]["value"] == other["value"] - before[1][key]["value"]
            assert other["reset"] is False
    cached, computed = (after[1][name, "[]"]["value"] - before[1][name, "[]"]["value"] for name in (CACHED, COMPUTED))
    assert (cached, cached + computed) == (reported.cached, reported.prompt)
    assert cached > 0

    assert isinstance(raw, list)
    scraped = [round(at_s * 1e3) * 10**6 for at_s, _ in raw]
    times = [row["t_ns"] for row in rows[1] if row["name"] == "up"]
    assert times == [at_ns for at_ns in scraped if first_ns <= at_ns <= last_ns], "each scrape comes once"
    assert "periodic" in moments(rows[1])
    assert all(collector.reason is None and not collector.restarts for collector in collectors)
    assert collectors[1].notes == []


def test_the_pages_of_engines_come_out_of_prometheus_as_they_went_in(
    serve: Serve, fixtures: Path, tmp_path: Path
) -> None:
    pages = {name: serve({"GET /metrics": (fixtures / name).read_text()}) for name in PAGES}
    jobs = {f"job-{number}": [url.removeprefix("http://")] for number, url in enumerate(pages.values())}
    with running_prometheus(tmp_path, jobs) as prometheus:
        for job, url in zip(jobs, pages.values(), strict=True):
            rows: tuple[list[Row], list[Row]] = ([], [])
            open_collector(Target(url=url), rows[0].extend).scrape_now("before")
            open_collector(through(prometheus, job, url), rows[1].extend).scrape_now("before")
            direct, indirect = (at(of, "before") for of in rows)
            assert len(direct) > 100
            assert direct.keys() == indirect.keys()
            for key, row in direct.items():
                assert (row["family"], row["type"]) == (indirect[key]["family"], indirect[key]["type"])
                if row["name"] not in ("up", "scrape_duration_seconds"):
                    assert str(row["value"]) == str(indirect[key]["value"])  # as text, since NaN is not NaN


def test_a_border_is_a_scrape_that_began_after_it_was_asked_for(llama_cpp_server: Start, tmp_path: Path) -> None:
    server = llama_cpp_server()
    with running_prometheus(tmp_path, {"engine": [host(server)]}) as url:
        rows: list[Row] = []
        collector = open_collector(through(url, "engine", server.url), rows.extend)
        output = 0
        for _ in range(3):
            output += chat(server.url, ["# one"]).output
            collector.scrape_now("check")
    assert values([row for row in rows if row["moment"] == "check"], "llamacpp:tokens_predicted_total") == [
        output / 3,
        output / 3 * 2,
        output,
    ]


def test_replicas_are_told_apart(llama_cpp_server: Start, tmp_path: Path) -> None:
    servers = [llama_cpp_server() for _ in range(2)]
    pages = [f"http://{host(server)}/metrics" for server in servers]
    engine = connect(Target(url=servers[0].url))
    with running_prometheus(tmp_path, {"both": [host(server) for server in servers]}) as url:
        rows: tuple[list[Row], list[Row]] = ([], [])
        collectors: list[Collector] = [
            open_collector(Target(url=servers[0].url, metrics_urls=tuple(pages)), rows[0].extend),
            open_collector(through(url, "both", servers[0].url), rows[1].extend),
        ]
        chat(servers[0].url, ["# one"])
        chat(servers[1].url, ["# one", "# two"])
        assert all(collector.settle("after", engine.is_idle) for collector in collectors)
    for of in rows:
        generated = [at(of, "after", host(server))["llamacpp:tokens_predicted_total", "[]"] for server in servers]
        assert [row["value"] for row in generated] == [2.0, 4.0]
    assert [sum(s.value for s in c.samples if s.name == "llamacpp:tokens_predicted_total") for c in collectors] == [
        6,
        6,
    ]


def test_a_restart_is_seen_in_the_samples_of_prometheus(llama_cpp_server: Start, tmp_path: Path) -> None:
    port = free_port()
    server = llama_cpp_server(port=port)
    with running_prometheus(tmp_path, {"engine": [host(server)]}) as url:
        rows: list[Row] = []
        collector = open_collector(through(url, "engine", server.url), rows.extend)
        chat(server.url, ["# one"])
        collector.scrape_now("before")
        server.process.kill()
        server.process.wait()
        collector.scrape_now("periodic")
        assert collector.reason == f"Prometheus could not scrape 127.0.0.1:{port}"
        llama_cpp_server(port=port)
        collector.scrape_now("after")
        assert collector.reason is None
    ups = [row for row in rows if row["name"] == "up"]
    assert {row["error"] for row in ups if row["value"] == 0} == {f"Prometheus could not scrape 127.0.0.1:{port}"}
    marks = resets(rows, "llamacpp:tokens_predicted_total")
    assert marks[0] is None
    assert marks.count(True) == 1
    [restart] = collector.restarts
    assert str(restart).startswith(f"the server at 127.0.0.1:{port} was restarted during the run (between ")
    read = [row["t_ns"] for row in ups if row["value"] == 1]
    assert restart.after_ns in read
    assert restart.before_ns == read[read.index(restart.after_ns) + 1]


def test_a_prometheus_that_knows_no_such_target_is_told(llama_cpp_server: Start, tmp_path: Path) -> None:
    server = llama_cpp_server()
    with running_prometheus(tmp_path, {"one": [host(server)], "two": [host(server)]}) as url:
        rows: list[Row] = []
        other = open_collector(through(url, "three", server.url), rows.extend)
        other.scrape_now("before")
        assert other.reason == f'Prometheus at {url} scrapes no target with the labels {{job="three"}}'
        twice = open_collector(
            Target(url=server.url, prometheus=Prometheus(url=url, selector={"site": "lab"})), rows.extend
        )
        twice.scrape_now("before")
        assert twice.reason is not None
        assert twice.reason.startswith(f"Prometheus at {url} scrapes {host(server)} 2 times under")
    assert [(row["value"], row["error"]) for row in rows if row["name"] == "up"] == [
        (0.0, other.reason),
        (0.0, twice.reason),
    ]


def test_the_tests_of_prometheus_are_skipped_where_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(pytest.skip.Exception, match="apt-get install"), running_prometheus(tmp_path, {}):
        pass
