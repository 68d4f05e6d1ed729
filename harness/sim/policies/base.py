"""What the scheduler wants of each engine's way to choose."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from harness.sim.generation import Generation
from harness.sim.kv.base import Cache
from harness.sim.request import H, Plan, Request


class Policy(Protocol[H]):
    """A queue and the requests under way.

    Between a `plan` and the end of its step only `add` is called, and `drop` of what the step does not compute.
    """

    @property
    def cache(self) -> Cache[H]: ...

    @property
    def running(self) -> Collection[Request[H]]:
        """Scheduled at least once and not at their end, in the order of their admission."""
        ...

    @property
    def waiting(self) -> Collection[Request[H]]:
        """In the order of the queue."""
        ...

    @property
    def may_clear(self) -> bool:
        """Whether the engine would empty its cache now."""
        ...

    def refusal(self, generation: Generation) -> str | None:
        """Why it can never be served; None: it can."""
        ...

    def add(self, request: Request[H]) -> None:
        """It has arrived."""
        ...

    def plan(self, now_s: float) -> Plan[H]:
        """Admit, preempt, and choose what the next step computes; room is taken for all of it."""
        ...

    def computed(self, request: Request[H]) -> None:
        """The step has computed a part of it."""
        ...

    def finish(self, request: Request[H]) -> None:
        """Its answer is complete."""
        ...

    def drop(self, request: Request[H]) -> None:
        """Its client hung up; what is computed is kept as far as the engine keeps it."""
        ...
