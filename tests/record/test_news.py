"""What workers tell of their requests: all that is new, nothing twice, and never more than can be told."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record import news
from harness.record.news import RequestNews, Told


def row(session: int, path: list[int], **changes: Any) -> dict[str, Any]:
    known = {"target": "here", "session": session, "turn": 0, "t_send": 1_000, "t_first": 1_030, "t_last": None}
    known |= {"t_end": 1_060, "status": "ok", "planned_output_tokens": 8, "output_tokens": 6, "slot": None}
    known |= {"replica": None, "cache_salt": None, "cached_tokens": 0, "prompt_tokens": 9}
    return known | {"path": path, "path_tokens": [10 * one for one in path]} | changes


def told(some: RequestNews) -> list[Told]:
    return [Told(*one) for one in some.take(2_000)["requests"]]


def test_of_a_path_only_what_the_session_has_not_told_is_told() -> None:
    some = RequestNews({"here": 2})
    for session, path in ((1, [7, 8, 9]), (2, [7, 8]), (1, [7, 8, 5, 6])):
        some.add(row(session, path))
    assert [(one.same, one.path, one.path_tokens) for one in told(some)] == [
        (0, [7, 8, 9], [70, 80, 90]),
        (0, [7, 8], [70, 80]),
        (2, [5, 6], [50, 60]),
    ]
    assert told(some) == []
    some.add(row(1, [7, 8, 5, 6], path_tokens=[70, 80, 50, 61]))  # another length is another segment
    assert told(some)[0].same == 3


def test_stamps_are_by_the_clock_of_the_run() -> None:
    some = RequestNews({"here": 0}, clock_ahead_ns=400)
    some.add(row(1, [7]))
    report = some.take(2_000)
    (one,) = (Told(*plain) for plain in report["requests"])
    assert (one.t_send, one.t_first, one.t_last, one.t_end) == (600, 630, None, 660)
    assert (report["until_ns"], report["number"]) == (1_600, 1)
    assert some.take(2_000)["number"] == 2


def test_what_was_not_sent_is_no_news() -> None:
    some = RequestNews({"here": 0})
    some.add(row(1, [7], status="refused", t_send=None))
    assert told(some) == []


@pytest.mark.parametrize(("changes", "reports"), [({}, True), ({"cached_tokens": None}, False)])
def test_whether_cached_tokens_are_reported_is_told(changes: dict[str, Any], reports: bool) -> None:
    some = RequestNews({"here": 0})
    some.add(row(1, [7], **changes))
    assert told(some)[0].reports == reports


def test_there_is_a_most_that_is_kept_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MOST_SEGMENTS", 5)
    monkeypatch.setattr(news, "PATHS_KEPT", 2)
    some = RequestNews({"here": 0})
    for session in (1, 2, 3, 1):
        some.add(row(session, [7]))
    assert [one.same for one in told(some)] == [0, 0, 0, 0]  # what was told first is forgotten
    for session in range(20):
        some.add(row(session, [7, 8]))
    full = some.take(2_000)
    assert (full["is_full"], full["requests"]) == (True, [])
    some.add(row(1, [9]))
    assert some.take(2_000)["is_full"]  # from then on it says no more
