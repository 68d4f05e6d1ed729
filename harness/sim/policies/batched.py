"""mlx-lm's way (server of 0.32): a batch of answers, and beside it a batch of prompts that join them."""

from __future__ import annotations

import math

from harness.sim.generation import Generation
from harness.sim.kv.store import StoreCache, StoreHold
from harness.sim.options import SimOptions
from harness.sim.request import Plan, Request

PROMPTS, ANSWERS = 8, 32
"""`--prompt-concurrency` and `--decode-concurrency`."""
STEP_TOKENS = 2048
"""`--prefill-step-size`: tokens of each prompt that a step computes."""
LOOK_S = 0.5
"""While a batch runs, new requests are looked at so often."""


class BatchedSteps:
    """A step computes one token of each answer, and the next tokens of up to eight prompts, filled up to the longest.

    A prompt's last token is computed with the answers. As long as 32 answers are under way, prompts wait.
    """

    def __init__(self, options: SimOptions) -> None:
        self.cache = StoreCache(options.entries if options.prefix_caching else 0, options.capacity_tokens)
        self.running: list[Request[StoreHold]] = []
        self._arrived: list[Request[StoreHold]] = []
        self._queue: list[Request[StoreHold]] = []
        """Looked up, but in no batch."""
        self._looked_s = -math.inf

    @property
    def waiting(self) -> list[Request[StoreHold]]:
        return [*self._queue, *self._arrived]

    @property
    def may_clear(self) -> bool:
        return not (self.running or self._queue or self._arrived)

    def refusal(self, generation: Generation) -> str | None:
        """There is no limit."""
        return None

    def add(self, request: Request[StoreHold]) -> None:
        self._arrived.append(request)

    def plan(self, now_s: float) -> Plan[StoreHold]:
        plan: Plan[StoreHold] = Plan()
        if now_s - self._looked_s > LOOK_S or not (self.running or self._queue):
            for request in self._arrived:
                self.cache.look_up(request)
            self._queue += self._arrived
            self._arrived.clear()
            self._looked_s = now_s
        plan.decodes += [request for request in self.running if request.decoding]
        answers = len(plan.decodes)
        if answers >= ANSWERS:
            return plan
        prompts = len(self.running) - answers
        count = min(PROMPTS - prompts, ANSWERS - answers)
        self.running += self._queue[:count]
        del self._queue[:count]
        longest = chunks = computed = 0
        for request in self.running:
            if request.decoding:
                continue
            if request.left == 1:
                plan.parts.append((request, 1))
                continue
            new = min(self.cache.next_border(request) - request.computed, STEP_TOKENS)
            plan.parts.append((request, new))
            longest, chunks, computed = max(longest, new), chunks + 1, computed + new
        plan.padding_tokens = longest * chunks - computed
        return plan

    def computed(self, request: Request[StoreHold]) -> None:
        self.cache.add_computed(request)

    def finish(self, request: Request[StoreHold]) -> None:
        self.running.remove(request)
        self.cache.finish(request)

    def drop(self, request: Request[StoreHold]) -> None:
        if request in self.running:
            self.running.remove(request)
            self.cache.add_computed(request)
        else:
            (self._queue if request in self._queue else self._arrived).remove(request)
        self.cache.abandon(request)
