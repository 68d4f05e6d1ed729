"""How a hit is told: by the answer, by the counter, by the clock, or not at all."""

from __future__ import annotations

from itertools import cycle

import pytest

from harness.cache.block_pool import BlockPool
from harness.cache.slots import Slots
from harness.checks.sight import NoSight, Seen, Sight, Source, learn_sight
from harness.errors import TargetError
from tests.checks.filled import HEAD, Filled


@pytest.mark.parametrize("source", ["usage", "counter", "clock"])
def test_a_hit_is_told_by_whatever_tells_it(source: Source) -> None:
    ask = Filled(Slots(1, 1024), source)
    sight = learn_sight(ask, "x", 500)
    assert isinstance(sight, Sight)
    assert sight.source == source
    ask("new", 500)
    assert sight.share(ask("new", 500)) == 1
    assert sight.share(ask("newer", 500)) == 0


def test_what_all_prompts_have_in_common_is_no_hit() -> None:
    sight = learn_sight(Filled(Slots(1, 1024)), "x", 500)
    assert sight == Sight("usage", whole=499, nothing=HEAD)
    assert sight.share(Seen(HEAD, None, None)) == 0
    assert sight.share(Seen(HEAD + (499 - HEAD) // 4, None, None)) == pytest.approx(0.25)


def test_a_cache_that_is_off_is_counted() -> None:
    def ask(label: str, tokens: int, counted: bool = True) -> Seen:
        return Seen(0, None, 1.0)

    assert learn_sight(ask, "x", 500) == NoSight(is_counted=True)


def test_a_counter_is_read_where_answers_report_nothing_that_was_hit() -> None:
    model = BlockPool(100, 16)
    ask = Filled(model, "counter")
    assert learn_sight(ask, "x", 161) == Sight("counter", 160, 0)


@pytest.mark.parametrize(
    ("cold_ms", "warm_ms", "is_seen"),
    [((90, 80, 70), (10, 11, 12), True), ((90, 80, 17), (10, 11, 12), False), ((9, 9, 9), (9, 9, 9), False)],
)
def test_by_the_clock_all_repeats_must_be_clearly_sooner(
    cold_ms: tuple[float, ...], warm_ms: tuple[float, ...], is_seen: bool
) -> None:
    times = cycle([time for pair in zip(cold_ms, warm_ms, strict=True) for time in pair])

    def ask(label: str, tokens: int, counted: bool = True) -> Seen:
        return Seen(None, None, next(times))

    sight = learn_sight(ask, "x", 500)
    assert sight == (Sight("clock", 11, 80) if is_seen else NoSight(is_counted=False))


def test_a_count_that_is_no_longer_told_is_not_taken_for_nothing() -> None:
    with pytest.raises(TargetError, match="stopped telling"):
        Sight("usage", 499, 0).share(Seen(None, None, 3.0))


def test_a_server_that_always_reports_none_is_read_by_the_clock() -> None:
    times = cycle([90.0, 10.0])

    def ask(label: str, tokens: int, counted: bool = True) -> Seen:
        return Seen(0, None, next(times))

    assert learn_sight(ask, "x", 500) == Sight("clock", 10, 90)
