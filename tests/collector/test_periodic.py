from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import gevent
import pytest

from harness.collector import Row
from harness.collector.pages import PageCollector, next_tick
from harness.engines.target import Target
from tests.collector.scripted_pages import collect, moments, page_of
from tests.engines.scripted_server import Serve


def test_periodic_scrapes_go_on_until_they_are_stopped(serve: Serve) -> None:
    collector, rows = collect(serve, page_of(0, 1), every_s=0.05)
    collector.start()
    with gevent.Timeout(30):
        while len(moments(rows)) < 3:
            gevent.sleep(0.01)
    collector.stop()
    taken = len(moments(rows))
    assert set(moments(rows)) == {"periodic"}
    gevent.sleep(0.15)
    assert len(moments(rows)) == taken


def test_rows_that_cannot_be_kept_are_an_error_at_the_end(serve: Serve) -> None:
    def full(_: list[Row]) -> None:
        raise OSError("disk full")

    collector = PageCollector(Target(url=serve({"GET /metrics": page_of(0, 1)})), full, every_s=0.01)
    collector.start()
    gevent.sleep(0.1)
    with pytest.raises(OSError, match="disk full"):
        collector.stop()


@pytest.mark.parametrize(
    ("tick", "elapsed_s", "upcoming", "missed"),
    [(0, 0.0, 1, 0), (0, 0.2, 1, 0), (0, 1.0, 1, 0), (0, 1.1, 2, 1), (4, 7.5, 8, 3), (9, 9.01, 10, 0)],
)
def test_ticks_stand_on_a_fixed_schedule(tick: int, elapsed_s: float, upcoming: int, missed: int) -> None:
    assert next_tick(tick, elapsed_s, every_s=1.0) == (upcoming, missed)


IN_A_PATCHED_PROCESS = """
from gevent import monkey; monkey.patch_all()
import sys, gevent
from harness.collector import open_collector
from harness.engines.target import Target

moments, turns = [], 0
collector = open_collector(Target(url=sys.argv[1]), lambda rows: moments.append(rows[0]["moment"]), every_s=0.1)

def count():
    global turns
    while True:
        gevent.sleep(0.01)
        turns += 1

gevent.spawn(count)
collector.start()
gevent.sleep(0.2)
gevent.joinall([gevent.spawn(collector.scrape_now, "before") for _ in range(2)])
gevent.sleep(0.2)
collector.stop()
print(moments.count("before"), moments.count("periodic"), collector.missed_ticks, turns)
"""


@pytest.mark.timing
def test_a_slow_page_is_never_read_twice_at_once_and_holds_nobody_up(serve: Serve) -> None:
    reading: list[int] = []
    most: list[int] = []

    def slow(_: object) -> str:
        reading.append(1)
        most.append(len(reading))
        time.sleep(0.35)
        reading.pop()
        return page_of(0, 1)

    command = [sys.executable, "-c", IN_A_PATCHED_PROCESS, serve({"GET /metrics": slow})]
    folder = Path(__file__).parents[2]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder).stdout
    before, periodic, missed, turns = map(int, output.split())
    assert max(most) == 1
    assert before == 2
    assert periodic >= 1
    assert missed >= 2
    assert turns >= 20


TWO_PAGES = """
from gevent import monkey; monkey.patch_all()
import sys, gevent
from harness.collector import open_collector
from harness.engines.target import Target

scrapes = []
target = Target(url="http://engine", metrics_urls=tuple(sys.argv[1:]))
collector = open_collector(target, lambda rows: scrapes.append((rows[0]["replica"], rows[0]["moment"])), every_s=0.1)
collector.start()
border = gevent.spawn(collector.scrape_now, "before")
gevent.sleep(0.6)
quick, slow = (url[7:-8] for url in sys.argv[1:])
print(scrapes.count((quick, "periodic")), scrapes.count((quick, "before")), sum(name == slow for name, _ in scrapes))
border.get()
collector.stop()
print(scrapes.count((slow, "before")))
"""


@pytest.mark.timing
def test_a_slow_page_does_not_hold_up_another(serve: Serve) -> None:
    def slow(_: object) -> str:
        time.sleep(1.0)
        return page_of(0, 1)

    pages = [serve({"GET /metrics": answer}) + "/metrics" for answer in (page_of(0, 1), slow)]
    command = [sys.executable, "-c", TWO_PAGES, *pages]
    folder = Path(__file__).parents[2]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=folder).stdout
    quick_periodic, quick_before, of_slow, slow_before = map(int, output.split())
    assert quick_periodic >= 3
    assert quick_before == 1
    assert of_slow == 0
    assert slow_before == 1
