"""vLLM's way (v1 scheduler of 0.32): each step mixes answers and parts of prompts, within a budget of tokens."""

from __future__ import annotations

from collections import deque

from harness.sim.generation import Generation
from harness.sim.kv.blocks import BlockCache, BlockHold
from harness.sim.options import SimOptions
from harness.sim.request import Plan, Request


class MixedSteps:
    """Running requests first, in the order of their admission; then the queue, first come, first served.

    - Prompts are cut into chunks wherever the budget ends.
    - A request is admitted if all its tokens find room, though only the blocks of its first chunk are taken
      (`scheduler_reserve_full_isl`, which is on by default).
    - If a running request lacks a block, the one admitted last is preempted: its blocks are freed, it goes to the front
      of the queue, and once it is admitted again it looks up what of its own is still there. In that step it is not, as
      it needs more than it gave back, and so nothing is.
    """

    def __init__(self, options: SimOptions) -> None:
        self.cache = BlockCache(options.capacity_tokens, options.granularity_tokens, options.prefix_caching)
        self._step_tokens = options.step_tokens
        self._max_running = options.max_running
        self.running: list[Request[BlockHold]] = []
        self.waiting: deque[Request[BlockHold]] = deque()

    @property
    def may_clear(self) -> bool:
        return not self.cache.used_tokens

    def refusal(self, generation: Generation) -> str | None:
        tokens = len(generation.prompt_ids) + generation.max_tokens
        if tokens - 1 <= self.cache.capacity_tokens:  # the last token is never stored
            return None
        return f"its {tokens} tokens do not fit into {self.cache.capacity_tokens} tokens of KV cache"

    def add(self, request: Request[BlockHold]) -> None:
        self.waiting.append(request)

    def plan(self, now_s: float) -> Plan[BlockHold]:
        plan: Plan[BlockHold] = Plan()
        running, decodes, budget, index = self.running, plan.decodes, self._step_tokens, 0
        while budget and index < len(running):
            request = running[index]
            new = 1 if request.decoding else min(request.left, budget)
            if request.computed + new > request.hold.quiet_to and not self._make_room(request, new, plan):
                break
            if request.decoding:
                decodes.append(request)
            else:
                plan.parts.append((request, new))
            budget -= new
            index += 1
        while self.waiting and budget and len(running) < self._max_running:
            request = self.waiting[0]
            if not self.cache.admit(request, budget):
                break
            running.append(self.waiting.popleft())
            new = min(request.left, budget)
            plan.parts.append((request, new))
            budget -= new
        return plan

    def computed(self, request: Request[BlockHold]) -> None:
        """Its blocks were entered when they were taken."""

    def finish(self, request: Request[BlockHold]) -> None:
        self.cache.release(request)
        self.running.remove(request)

    def drop(self, request: Request[BlockHold]) -> None:
        self.cache.release(request)
        (self.running if request in self.running else self.waiting).remove(request)

    def _make_room(self, request: Request[BlockHold], new: int, plan: Plan[BlockHold]) -> bool:
        """Have blocks for its next `new` tokens, by preemption if need be; False: it was itself preempted."""
        while not self.cache.grow(request, request.computed + new):
            victim = self.running.pop()
            self.cache.release(victim)
            victim.lose()
            self.waiting.appendleft(victim)
            plan.preempted.append(victim)
            if victim is request:
                return False
        return True
