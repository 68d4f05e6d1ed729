from __future__ import annotations

import socket

import gevent
import pytest

from harness.collector import Row, open_collector
from harness.collector.pages import PageCollector, replica_names
from harness.engines.target import Target
from harness.errors import TargetError
from tests.collector.scripted_pages import collect, collect_all, idle, moments, one_after_another, page_of, values
from tests.engines.scripted_server import Serve


def test_a_scrape_becomes_rows(serve: Serve) -> None:
    root = serve({"GET /metrics": 'a_total{b="c"} 2\n'})
    rows: list[Row] = []
    PageCollector(Target(url=root, name="mine"), rows.extend).scrape_now("check")
    up, duration, sample = rows
    assert list(sample) == [
        "t_ns", "moment", "target", "replica", "name", "family", "type", "labels", "value", "reset", "error"
    ]  # fmt: skip
    assert set(up) == set(duration) == set(sample)
    assert (sample["moment"], sample["target"], sample["replica"]) == ("check", "mine", root[7:])
    assert (sample["name"], sample["type"], sample["labels"], sample["value"]) == (
        "a_total",
        "unknown",
        {"b": "c"},
        2.0,
    )
    assert (up["name"], up["value"], up["error"]) == ("up", 1.0, None)
    assert duration["name"] == "scrape_duration_seconds"
    assert 0 < duration["value"] < 5
    assert len({row["t_ns"] for row in rows}) == 1


def test_a_failed_scrape_is_a_row_and_the_next_one_may_work(serve: Serve) -> None:
    collector, rows = collect(serve, one_after_another([(500, "broken"), page_of(0, 1)]))
    assert not collector.available
    assert collector.reason is None
    collector.scrape_now("before")
    assert not collector.available
    assert collector.reason is not None
    assert collector.reason.endswith("/metrics answered 500 (broken)")
    assert (rows[0]["name"], rows[0]["value"], rows[0]["error"]) == ("up", 0.0, collector.reason)
    assert len(rows) == 2
    collector.scrape_now("periodic")
    assert collector.available
    assert collector.reason is None
    assert values(rows, "up") == [0.0, 1.0]


@pytest.mark.parametrize("status", [404, 501])
def test_a_server_without_metrics_is_asked_once_for_each_border(serve: Serve, status: int) -> None:
    asked: list[object] = []

    def answer(request: object) -> tuple[int, str]:
        asked.append(request)
        return status, "none"

    collector, rows = collect(serve, answer, every_s=0.01)
    collector.scrape_now("before")
    assert not collector.available
    collector.start()
    gevent.sleep(0.1)
    collector.stop()
    assert len(asked) == 1
    assert not collector.settle("after", idle)
    assert moments(rows) == ["before", "after"]


def test_metrics_that_are_not_wanted_are_not_asked_for() -> None:
    collector, rows = collect_all([])
    collector.scrape_now("before")
    collector.start()
    collector.stop()
    assert not collector.settle("after", idle)
    assert not collector.available
    assert collector.samples == ()
    assert collector.reason == "the target has metrics_urls: none"
    assert rows == []


def test_the_key_that_is_missing_is_told_at_once() -> None:
    with pytest.raises(TargetError, match="KVSWARM_NO_SUCH_KEY, which is not set"):
        open_collector(Target(url="http://h", api_key_env="KVSWARM_NO_SUCH_KEY"), lambda _: None)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_each_replica_has_rows_of_its_own(serve: Serve) -> None:
    urls = [serve({"GET /metrics": page_of(0, tokens)}) + "/metrics" for tokens in (3, 4)]
    collector, rows = collect_all(urls)
    collector.scrape_now("before")
    tokens = {row["replica"]: row["value"] for row in rows if row["name"] == "tokens_total"}
    assert tokens == {urls[0][7:-8]: 3.0, urls[1][7:-8]: 4.0}
    assert sorted(sample.value for sample in collector.samples) == [0, 0, 3, 4]
    assert collector.reason is None


def test_a_dead_page_does_not_take_the_others_along(serve: Serve) -> None:
    dead = f"http://127.0.0.1:{closed_port()}/metrics"
    collector, rows = collect_all([dead, serve({"GET /metrics": page_of(0, 3)}) + "/metrics"])
    collector.scrape_now("before")
    assert values(rows, "tokens_total") == [3.0]
    assert sorted(values(rows, "up")) == [0.0, 1.0]
    assert collector.available
    assert collector.reason == (
        f"1 of 2 metrics pages: GET {dead} failed: nothing listens at {dead[7:-8]}; "
        "is the server running, is the port right?"
    )


def test_there_are_no_samples_where_a_replica_is_missing_since_their_sum_would_be_wrong(serve: Serve) -> None:
    pages = [page_of(0, 3), (500, "broken"), page_of(0, 5)]
    first, second = (serve({"GET /metrics": answer}) for answer in (page_of(0, 1), one_after_another(pages)))
    collector, _ = collect_all([f"{first}/metrics", f"{second}/metrics"])
    seen = []
    for _ in pages:
        collector.scrape_now("check")
        seen.append(sum(sample.value for sample in collector.samples))
    assert seen == [4.0, 0.0, 6.0]


def test_every_page_settles_by_itself(serve: Serve) -> None:
    pages = [[page_of(0, 1)], [page_of(1, 1), page_of(0, 1), page_of(0, 2)]]
    roots = [serve({"GET /metrics": one_after_another(answers)}) for answers in pages]
    collector, rows = collect_all([f"{root}/metrics" for root in roots])
    assert collector.settle("after", idle)
    of = {root[7:]: [row for row in rows if row["replica"] == root[7:]] for root in roots}
    assert [moments(of[root[7:]]) for root in roots] == [["periodic", "after"], ["periodic"] * 3 + ["after"]]


def test_replicas_are_told_apart_by_their_paths_where_host_and_port_do_not_do() -> None:
    assert replica_names(("http://a:1/metrics", "http://a:2/metrics")) == {
        "http://a:1/metrics": "a:1",
        "http://a:2/metrics": "a:2",
    }
    assert list(replica_names(("http://a:1/x/metrics", "http://a:1/y/metrics", "http://b/metrics")).values()) == [
        "a:1/x/metrics",
        "a:1/y/metrics",
        "b",
    ]
