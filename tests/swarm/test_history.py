"""A page asks again and again for what it lacks, and gets a run of any length in few points."""

from __future__ import annotations

from typing import Any

from harness.swarm.history import MOST, History


class Page:
    """Keeps what it was given."""

    def __init__(self) -> None:
        self.points: list[Any] = []
        self.every = self.count = 0

    def ask(self, history: History) -> None:
        told = history.since(self.every, self.count)
        self.points[told["from"] :] = told["points"]
        self.every, self.count = told["every"], told["count"]
        assert len(self.points) == self.count
        self.newest = told["newest"]


def test_a_page_that_asks_now_and_then_has_all_points_that_are_kept() -> None:
    history, often, seldom = History(), Page(), Page()
    for t in range(10 * MOST):
        history.add({"t": t})
        often.ask(history)
        assert often.newest == {"t": t}
        if t % 777 == 0:
            seldom.ask(history)
    seldom.ask(history)
    times = [point["t"] for point in seldom.points]
    assert seldom.points == often.points
    assert times == list(range(0, 10 * MOST, times[1]))
    assert MOST / 2 <= len(times) <= MOST


def test_what_is_new_is_all_that_is_sent() -> None:
    history = History()
    for t in range(5):
        history.add({"t": t})
    assert history.since(0, 0)["points"] == [{"t": t} for t in range(5)]
    assert history.since(1, 3)["points"] == [{"t": 3}, {"t": 4}]
    assert history.since(1, 5)["points"] == []
    assert len(history.since(2, 3)["points"]) == 5  # of another thinning
    assert len(history.since(1, 9)["points"]) == 5  # of another run
    assert History().since(0, 0) == {"every": 1, "count": 0, "from": 0, "points": [], "newest": None}
