"""Waiting for what happens to requests inside the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from harness.sim.generation import Generation
from harness.sim.manners.llama_cpp_metrics import Metrics


class Watch(Metrics):
    """The metrics' observer, which also wakes those who wait for a request to start or to end."""

    def __init__(self) -> None:
        super().__init__()
        self._waiters: dict[Generation, list[asyncio.Future[None]]] = {}

    def admitted(self, generation: Generation) -> None:
        super().admitted(generation)
        self._wake(generation)

    def ended(self, generation: Generation) -> None:
        super().ended(generation)
        self._wake(generation)

    async def start(self, generation: Generation) -> None:
        """Returns when it has been admitted, or refused."""
        await self._until(generation, lambda: generation.admitted_s is not None or generation.end is not None)

    async def end(self, generation: Generation) -> None:
        """Returns when it has ended."""
        await self._until(generation, lambda: generation.end is not None)

    async def _until(self, generation: Generation, is_so: Callable[[], bool]) -> None:
        while not is_so():
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.setdefault(generation, []).append(waiter)
            await waiter

    def _wake(self, generation: Generation) -> None:
        for waiter in self._waiters.pop(generation, ()):
            if not waiter.done():
                waiter.set_result(None)
