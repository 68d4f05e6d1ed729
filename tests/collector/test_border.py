from __future__ import annotations

from harness.collector.border import Border
from harness.collector.scrape import Scrape

A, B = (("instance", "a"),), (("instance", "b"),)


def scrape_at(ms: int) -> Scrape:
    return Scrape(ms * 10**6, 1.0, (), None)


def test_the_first_scrape_that_is_accepted_is_the_one_of_the_moment() -> None:
    border = Border("after", 1000, lambda _, scrape: scrape.t_ns >= 3000 * 10**6)
    before, first, second, third = map(scrape_at, (900, 2000, 3000, 4000))
    assert border.take(A, before) == [(before, "periodic")]
    assert border.take(A, first) == []
    assert border.held(A) == first
    assert border.take(A, second) == [(first, "periodic"), (second, "after")]
    assert border.held(A) is None
    assert border.take(A, third) == [(third, "periodic")]


def test_a_scrape_that_may_have_begun_before_does_not_count() -> None:
    border = Border("after", 1000, lambda _, __: True)
    aligned, later = scrape_at(1002), scrape_at(1010)
    assert border.take(A, aligned) == [(aligned, "periodic")]
    assert border.take(A, later) == [(later, "after")]


def test_replicas_are_waited_for_one_by_one() -> None:
    border = Border("after", 1000, lambda _, __: True)
    border.take(A, scrape_at(2000))
    assert border.missing([A, B]) == [B]
    border.take(B, scrape_at(2500))
    assert border.missing([A, B]) == []
