from __future__ import annotations

import pytest

from harness.collector.metrics_page import parse
from harness.collector.replica import Replica, Restart
from harness.collector.scrape import Scrape
from tests.collector.scripted_pages import collect, one_after_another, page_of, resets
from tests.engines.scripted_server import Serve

SECOND_NS = 10**9
NOON_NS = 1_795_953_600 * SECOND_NS  # 2026-11-29 12:00:00 UTC


def scrape_of(second: int, page: str, start_mark: str | None = None) -> Scrape:
    return Scrape(NOON_NS + second * SECOND_NS, 1.0, tuple(parse(page)), None, start_mark=start_mark)


def a_of(*values: int) -> str:
    """A page with a counter of so many label sets."""
    lines = "".join(f'a_total{{b="{number}"}} {value}\n' for number, value in enumerate(values))
    return f"# TYPE a_total counter\n{lines}"


def started(second: int, page: str) -> str:
    return f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {second}.25\n{page}"


def test_a_counter_that_falls_is_a_restart(serve: Serve) -> None:
    collector, rows = collect(serve, one_after_another([page_of(5, 10), page_of(3, 4), page_of(9, 4)]))
    for _ in range(3):
        collector.scrape_now("periodic")
    assert resets(rows, "tokens_total") == [None, True, False]
    assert resets(rows, "running") == [None, None, None]
    times = [row["t_ns"] for row in rows if row["name"] == "up"]
    assert collector.restarts == [Restart(rows[0]["replica"], times[0], times[1])]


def test_a_restart_is_told_in_a_sentence() -> None:
    assert str(Restart("127.0.0.1:8080", NOON_NS + 3 * SECOND_NS, NOON_NS + 7 * SECOND_NS)) == (
        "the server at 127.0.0.1:8080 was restarted during the run (between 12:00:03 and 12:00:07 UTC): "
        "its counters began again"
    )


def test_a_restart_lies_after_the_last_page_that_was_read(serve: Serve) -> None:
    collector, rows = collect(serve, one_after_another([page_of(0, 10), (500, "down"), page_of(0, 4)]))
    for _ in range(3):
        collector.scrape_now("periodic")
    times = [row["t_ns"] for row in rows if row["name"] == "up"]
    assert [(restart.after_ns, restart.before_ns) for restart in collector.restarts] == [(times[0], times[2])]


def test_each_counter_is_marked_even_if_it_has_grown_past_its_old_value() -> None:
    replica = Replica("t", "r")
    pages = [a_of(5, 5), a_of(6, 1), a_of(7, 1)]
    rows = [replica.rows(scrape_of(second, page), "periodic") for second, page in enumerate(pages)]
    assert [resets(of_page, "a_total") for of_page in rows] == [[None, None], [True, True], [False, False]]


@pytest.mark.parametrize("by", ["page", "header"])
def test_a_new_start_time_is_a_restart_although_no_counter_fell(by: str) -> None:
    replica = Replica("t", "r")
    rows = []
    for second, (start, value) in enumerate([(7, 5), (7, 6), (9, 8), (9, 8)]):
        page = started(start, a_of(value)) if by == "page" else a_of(value)
        rows += replica.rows(scrape_of(second, page, str(start) if by == "header" else None), "periodic")
    assert resets(rows, "a_total") == [None, False, True, False]
    assert [(restart.after_ns, restart.before_ns) for restart in replica.restarts] == [
        (NOON_NS + SECOND_NS, NOON_NS + 2 * SECOND_NS)
    ]


def test_a_server_that_was_started_before_the_first_scrape_was_not_restarted() -> None:
    replica = Replica("t", "r")
    rows = replica.rows(scrape_of(0, started(7, a_of(5)), "11783531892"), "before")
    assert resets(rows, "a_total") == [None]
    assert replica.restarts == []


def test_a_series_that_the_new_process_makes_later_is_marked_when_it_is_back() -> None:
    replica = Replica("t", "r")
    rows = []
    for second, (start, values) in enumerate([(7, (5, 5)), (9, ()), (9, (1,)), (9, (2, 6, 1)), (9, (2, 6, 1))]):
        rows.append(replica.rows(scrape_of(second, started(start, a_of(*values))), "periodic"))
    assert [resets(of_page, "a_total") for of_page in rows] == [
        [None, None],
        [],
        [True],
        [False, True, None],
        [False, False, False],
    ]
    assert len(replica.restarts) == 1


def test_counters_of_different_labels_are_not_compared() -> None:
    replica = Replica("t", "r")
    pages = ['a_total{b="1"} 5\na_total{b="2"} 1\n', 'a_total{b="2"} 1\na_total{b="1"} 5\n']
    for second, page in enumerate(pages):
        replica.rows(scrape_of(second, f"# TYPE a_total counter\n{page}"), "periodic")
    assert replica.restarts == []
