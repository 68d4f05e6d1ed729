from __future__ import annotations

import itertools

from tests.collector.scripted_pages import collect, idle, moments, one_after_another, page_of, values
from tests.engines.scripted_server import Serve


def test_settling_waits_for_an_idle_engine_and_for_counters_that_stand_still(serve: Serve) -> None:
    pages = [page_of(1, 10), page_of(1, 10), page_of(0, 10), page_of(0, 12), page_of(0, 12), page_of(0, 99)]
    collector, rows = collect(serve, one_after_another(pages))
    assert collector.settle("after", idle)
    assert values(rows, "tokens_total") == [10, 10, 10, 12, 12]
    assert moments(rows) == ["periodic"] * 4 + ["after"]


def test_an_engine_that_does_not_tell_settles_by_its_counters(serve: Serve) -> None:
    collector, rows = collect(serve, one_after_another([page_of(1, 10), page_of(1, 11), page_of(1, 11)]))
    assert collector.settle("warmup_end", lambda _: None)
    assert moments(rows) == ["periodic", "periodic", "warmup_end"]


def test_counters_of_time_and_of_scrapes_do_not_keep_it_from_settling(serve: Serve) -> None:
    clock = itertools.count()
    names = ("cpu_seconds_total", "http_requests_total")
    collector, rows = collect(
        serve, lambda _: "".join(f"# TYPE {name} counter\n{name} {next(clock)}\n" for name in names)
    )
    assert collector.settle("after", lambda _: True)
    assert moments(rows) == ["periodic", "after"]


def test_an_engine_that_stays_busy_ends_the_settling_by_time(serve: Serve) -> None:
    collector, rows = collect(serve, page_of(1, 10))
    assert not collector.settle("after", idle, timeout_s=0.6)
    assert collector.reason == f"{rows[0]['replica']} was not idle with its counters at rest within 0.6 s"
    assert collector.available
    assert moments(rows)[-1] == "after"
    assert set(moments(rows)[:-1]) == {"periodic"}
