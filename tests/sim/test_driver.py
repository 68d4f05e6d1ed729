"""A scheduler in step with a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.sim.clock import ScaledClock, VirtualClock, play
from harness.sim.driver import Clock, Driver, Stream
from harness.sim.generation import Generation
from harness.sim.options import SimOptions
from harness.sim.scheduler import Scheduler

OPTIONS = SimOptions(manner="vllm", kv_tokens=4096, context_tokens=2048)
WORDS = range(300, 400)


class Unwatched:
    """An observer of nothing."""

    def arrived(self, generation: Generation) -> None: ...
    def admitted(self, generation: Generation) -> None: ...
    def first_token(self, generation: Generation) -> None: ...
    def stepped(self, step: object) -> None: ...
    def preempted(self, generation: Generation) -> None: ...
    def ended(self, generation: Generation) -> None: ...


class Late:
    """A clock that is always a quarter of a second further than anybody hoped."""

    def now_s(self) -> float:
        return 0.0

    def wall_s(self, until_s: float) -> float:
        return -0.25


def scheduler() -> Scheduler:
    return Scheduler(OPTIONS, Unwatched(), WORDS)


def generation(first: int = 0, tokens: int = 5) -> Generation:
    return Generation(range(first, first + 100), tokens)


def with_driver(job: Callable[[Driver], Awaitable[None]], clock: Clock | None = None) -> None:
    async def run() -> None:
        await job(Driver(scheduler(), clock or VirtualClock()))

    asyncio.run(run())


def test_a_reader_gets_each_token_when_its_step_has_ended() -> None:
    async def job(driver: Driver) -> None:
        asked = generation()
        parts = [list(new) async for new in driver.submit(asked)]
        assert [len(new) for new in parts] == [1] * 5
        assert [token for new in parts for token in new] == asked.output_ids
        assert asked.end == "length"

    with_driver(job)


def test_a_slow_reader_gets_several_at_once() -> None:
    async def job(driver: Driver) -> None:
        stream = driver.submit(generation())
        while stream.generation.end is None:
            await asyncio.sleep(0)
        assert [len(new) async for new in stream] == [5]

    with_driver(job)


def test_steps_follow_each_other_as_on_virtual_time() -> None:
    """Times do not depend on readers, nor on what the machine does between two steps."""
    alone = [generation(0), generation(1000, 9)]
    play(scheduler(), [(0.0, one) for one in alone])

    async def job(driver: Driver) -> None:
        asked = [generation(0), generation(1000, 9)]
        await asyncio.gather(*(driver.submit(one).whole() for one in asked))
        assert [(one.first_token_s, one.ended_s) for one in asked] == [
            (one.first_token_s, one.ended_s) for one in alone
        ]

    with_driver(job)


def test_an_engine_that_was_idle_goes_on_at_the_time_it_is() -> None:
    async def job(driver: Driver) -> None:
        await driver.submit(generation()).whole()
        await asyncio.sleep(0.001)
        driver.clock.wall_s(100.0)
        asked = generation(1000)
        await driver.submit(asked).whole()
        assert asked.arrived_s == asked.admitted_s == 100.0

    with_driver(job)


def test_what_comes_in_the_middle_of_a_step_never_came_after_its_end() -> None:
    async def job(driver: Driver) -> None:
        first, second = driver.submit(generation(tokens=50)), generation(1000)
        await anext(first)
        driver.clock.wall_s(100.0)  # the machine stood still
        await driver.submit(second).whole()
        assert second.admitted_s is not None
        assert second.arrived_s <= second.admitted_s < 1.0
        first.close()

    with_driver(job)


def test_a_reader_that_leaves_ends_its_request() -> None:
    async def job(driver: Driver) -> None:
        stream = driver.submit(generation(tokens=1000))
        await anext(stream)
        stream.close()
        assert stream.generation.end == "abort"
        assert list(driver.scheduler.running) == []

    with_driver(job)


def test_waiting_that_is_cancelled_ends_the_request() -> None:
    async def job(driver: Driver) -> None:
        stream = driver.submit(generation(tokens=1000))
        waiting = asyncio.create_task(stream.whole())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert stream.generation.end == "abort"

    with_driver(job)


def test_a_driver_that_is_behind_says_so() -> None:
    async def job(driver: Driver) -> None:
        assert driver.lag_s == 0.0
        await driver.submit(generation()).whole()
        assert driver.lag_s == driver.greatest_lag_s == 0.25

    with_driver(job, Late())


def test_simulated_time_passes_as_fast_as_it_was_told() -> None:
    async def job(driver: Driver) -> None:
        asked = generation(tokens=200)
        await driver.submit(asked).whole()
        assert asked.ended_s is not None
        assert driver.clock.now_s() >= asked.ended_s - 1.0  # timers are a millisecond rough

    with_driver(job, ScaledClock(1000.0))


def test_after_each_step_it_is_told_who_got_something() -> None:
    heard: list[tuple[int, float]] = []

    async def run() -> None:
        driver = Driver(scheduler(), VirtualClock(), lambda served, now_s: heard.append((len(served), now_s)))
        asked = [generation(0, 2), generation(1000, 3)]
        await asyncio.gather(*(driver.submit(one).whole() for one in asked))
        assert heard[-1] == (1, asked[1].ended_s)

    asyncio.run(run())
    assert [served for served, _ in heard] == [2, 2, 1]


def test_a_failure_inside_reaches_every_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Scheduler, step: object) -> list[Generation]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(Scheduler, "complete", fail)

    async def job(driver: Driver) -> None:
        streams: list[Stream] = [driver.submit(generation(first)) for first in (0, 1000)]
        failed = await asyncio.gather(*(stream.whole() for stream in streams), return_exceptions=True)
        assert [str(error) for error in failed] == ["a bug"] * 2

    with_driver(job)
