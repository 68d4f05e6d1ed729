"""llama.cpp's way: each request in a slot of its own, one batch for all of them."""

from __future__ import annotations

from harness.cache.slots import BATCH_TOKENS
from harness.sim.generation import Generation
from harness.sim.kv.slots import SlotCache, SlotHold
from harness.sim.options import SimOptions
from harness.sim.request import Plan, Request


class SlottedSteps:
    """A batch of 2,048 tokens: one of each answer, then the prompts, slot by slot, each as far as there is room.

    A request that has its slot stays in it to its end, or to the end of the slot's context. Who has none waits; a slot
    that is left goes to one of them by the rules of `harness.cache.slots`.
    """

    def __init__(self, options: SimOptions) -> None:
        capacity_tokens = min(options.capacity_tokens, options.context_tokens * options.slots)
        self.cache = SlotCache(
            options.slots, capacity_tokens, options.cache_ram_mib, options.hardware.kv_bytes_per_token
        )
        self.running: list[Request[SlotHold]] = []
        self.waiting: list[Request[SlotHold]] = []

    @property
    def may_clear(self) -> bool:
        return not (self.running or self.waiting)

    def refusal(self, generation: Generation) -> str | None:
        """The server says so when the request has got a slot."""
        return None

    def add(self, request: Request[SlotHold]) -> None:
        request.end_tokens = min(request.end_tokens, self.cache.slot_tokens)
        self.waiting.append(request)

    def plan(self, now_s: float) -> Plan[SlotHold]:
        plan: Plan[SlotHold] = Plan()
        for request in self.waiting:
            if request.hold.admission is None:
                self.cache.ask(request)
        for request in [one for one in self.waiting if self.cache.started(one)]:
            self.waiting.remove(request)
            if self.cache.refused(request):
                self.cache.leave(request)
                plan.refused.append(request)
            else:
                self.running.append(request)
        in_slots = sorted(self.running, key=lambda one: one.hold.slot)
        plan.decodes += [request for request in in_slots if request.decoding]
        budget = BATCH_TOKENS - len(plan.decodes)
        for request in in_slots:
            if not request.decoding and budget > 0:
                new = min(request.left, budget)
                plan.parts.append((request, new))
                budget -= new
        return plan

    def computed(self, request: Request[SlotHold]) -> None:
        """The slot holds it as it is."""

    def finish(self, request: Request[SlotHold]) -> None:
        self.running.remove(request)
        self.cache.leave(request)

    def drop(self, request: Request[SlotHold]) -> None:
        (self.running if request in self.running else self.waiting).remove(request)
        self.cache.leave(request)
