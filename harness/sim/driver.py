"""A scheduler in step with a clock: requests come in, steps take their time, tokens go out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from harness.sim.generation import Generation
from harness.sim.scheduler import Scheduler

Hears = Callable[[Sequence[Generation], float], None]
"""Called after each step: the requests that got something, and the step's end in simulated seconds."""


class Clock(Protocol):
    """One of `harness.sim.clock`."""

    def now_s(self) -> float:
        """Simulated seconds since the engine's start."""
        ...

    def wall_s(self, until_s: float) -> float:
        """Seconds of the machine's clock until the simulated time `until_s`; negative if it is past."""
        ...


class Stream:
    """The tokens of one generation as they come, for one reader: `async for new in stream` gives the ids of a step.

    More than one step's, if the reader was slower. With the last of them `ended` is true. A generation that
    ends without further tokens (a refusal, say) ends the iteration. `close` it when nobody reads any more.
    """

    __slots__ = ("_driver", "_waiter", "generation", "given", "tells_progress")

    def __init__(self, generation: Generation, driver: Driver) -> None:
        self.generation = generation
        self.tells_progress = False
        """True: a step that only computed some of the prompt gives an empty list."""
        self.given = 0
        """Tokens that were read. The generation may have more already."""
        self._driver = driver
        self._waiter: asyncio.Future[None] | None = None

    @property
    def ended(self) -> bool:
        """The generation has ended, and all of its tokens were read."""
        return self.generation.end is not None and self.given == len(self.generation.output_ids)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> list[int]:
        output = self.generation.output_ids
        while len(output) == self.given and self.generation.end is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            if self.tells_progress:
                break
        new = output[self.given :]
        if not new and self.generation.end is not None:
            raise StopAsyncIteration
        self.given += len(new)
        return new

    async def whole(self) -> None:
        """Wait until the generation has ended, and close; it is aborted if the waiting is cancelled."""
        try:
            async for _ in self:
                pass
        finally:
            self.close()

    def close(self) -> None:
        """Abort the generation if it is under way."""
        self._driver.close(self)

    def wake(self) -> None:
        """There is something new: the generation's `notify`."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def fail(self, error: BaseException) -> None:
        """There will never be anything new."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


class Driver:
    """Runs the steps of one scheduler, each from the moment at which the one before ended, as a task of the loop.

    The task is there as long as there is something to do. `lag_s`: how late the latest step's tokens were, in seconds
    of the machine's clock; `greatest_lag_s`: the most so far. More than a few milliseconds mean that the machine
    cannot keep up, and that what clients measure is the simulator's own slowness.
    """

    def __init__(self, scheduler: Scheduler, clock: Clock, hears: Hears | None = None) -> None:
        self.scheduler = scheduler
        self.clock = clock
        self.hears = hears
        self.lag_s = 0.0
        self.greatest_lag_s = 0.0
        self._streams: set[Stream] = set()
        self._task: asyncio.Task[None] | None = None
        self._step_end_s = 0.0

    def now_s(self) -> float:
        """The engine's own time: while steps run it is never after the end of the one under way."""
        now_s = self.clock.now_s()
        return now_s if self._task is None else min(now_s, self._step_end_s)

    def submit(self, generation: Generation) -> Stream:
        """Hand it to the scheduler now. Its `notify` becomes the stream's."""
        stream = Stream(generation, self)
        generation.notify = stream.wake
        self._streams.add(stream)
        self.scheduler.submit(generation, self.now_s())
        if self._task is None:
            self._step_end_s = self.clock.now_s()
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._stopped)
        return stream

    def close(self, stream: Stream) -> None:
        """What `Stream.close` does."""
        self._streams.discard(stream)
        if stream.generation.end is None:
            self.scheduler.abort(stream.generation, self.now_s())

    async def _run(self) -> None:
        now_s = self._step_end_s
        try:
            while (step := self.scheduler.begin(now_s)) is not None:
                now_s = self._step_end_s = now_s + step.duration_s
                wait_s = self.clock.wall_s(now_s)
                if wait_s > 0:
                    await asyncio.sleep(wait_s)
                served = self.scheduler.complete(step)
                if self.hears is not None:
                    self.hears(served, now_s)
                self.lag_s = max(0.0, -self.clock.wall_s(now_s))
                self.greatest_lag_s = max(self.greatest_lag_s, self.lag_s)
                # The readers write what they got before the next step is planned.
                await asyncio.sleep(0)
        finally:
            self._task = None

    def _stopped(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            for stream in self._streams:
                stream.fail(error)
