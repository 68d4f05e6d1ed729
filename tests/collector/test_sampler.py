from __future__ import annotations

import gevent
import pytest

from harness.collector.sampler import Collector, Row
from harness.engines.target import Target
from harness.errors import TargetError
from tests.collector.scripted_pages import collect, idle, moments, one_after_another, page_of, values
from tests.engines.scripted_server import Serve


def test_a_scrape_becomes_rows(serve: Serve) -> None:
    root = serve({"GET /metrics": 'a_total{b="c"} 2\n'})
    rows: list[Row] = []
    Collector(Target(url=root), rows.extend).scrape_now("before")
    up, duration, sample = rows
    assert list(sample) == [
        "t_ns", "moment", "target", "replica", "name", "family", "type", "labels", "value", "reset", "error"
    ]  # fmt: skip
    assert set(up) == set(duration) == set(sample)
    assert (sample["moment"], sample["target"], sample["replica"]) == ("before", f"{root}/v1", root[7:])
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
    collector.scrape_now("before")
    assert not collector.available
    assert collector.reason is not None
    assert collector.reason.endswith("/metrics answered 500 (broken)")
    assert (rows[0]["name"], rows[0]["value"], rows[0]["error"]) == ("up", 0.0, collector.reason)
    assert len(rows) == 2
    collector.scrape_now("periodic")
    assert collector.available
    assert values(rows, "up") == [0.0, 1.0]


def test_a_counter_that_falls_is_marked_as_reset(serve: Serve) -> None:
    pages = [page_of(5, 10), (500, "down"), page_of(3, 4), page_of(9, 4)]
    collector, rows = collect(serve, one_after_another(pages))
    for _ in pages:
        collector.scrape_now("periodic")
    assert [row["reset"] for row in rows if row["name"] == "tokens_total"] == [None, True, False]
    assert [row["reset"] for row in rows if row["name"] == "running"] == [None, None, None]


def test_resets_are_told_for_each_set_of_labels(serve: Serve) -> None:
    first, second = (
        '# TYPE a_total counter\na_total{b="1"} 5\na_total{b="2"} 5\n',
        '# TYPE a_total counter\na_total{b="2"} 1\na_total{b="1"} 6\n',
    )
    collector, rows = collect(serve, one_after_another([first, second]))
    collector.scrape_now("before")
    collector.scrape_now("after")
    resets = {
        (row["labels"]["b"], row["reset"]) for row in rows if row["name"] == "a_total" and row["moment"] == "after"
    }
    assert resets == {("1", False), ("2", True)}


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
    rows: list[Row] = []
    collector = Collector(Target(url="http://127.0.0.1:1", metrics_url=None), rows.extend)
    collector.scrape_now("before")
    collector.start()
    collector.stop()
    assert not collector.settle("after", idle)
    assert not collector.available
    assert collector.reason == "the target has metrics_url: none"
    assert rows == []


def test_the_key_that_is_missing_is_told_at_once() -> None:
    with pytest.raises(TargetError, match="KVSWARM_NO_SUCH_KEY, which is not set"):
        Collector(Target(url="http://h", api_key_env="KVSWARM_NO_SUCH_KEY"), lambda _: None)
