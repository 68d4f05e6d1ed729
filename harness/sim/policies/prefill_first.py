"""SGLang's way (0.5.23, policy fcfs): prompts in steps of their own, and before answers."""

from __future__ import annotations

from collections import deque

from harness.sim.generation import Generation
from harness.sim.kv.pages import PageCache, PageHold
from harness.sim.options import SimOptions
from harness.sim.request import Plan, Request

CLIP_TOKENS = 4096
"""More than this of an answer is not thought of beforehand."""
FIRST_RATIO, LAST_RATIO, RATIO_STEPS = 0.7, 0.7 * 0.14, 600
"""Share of their answers that running requests are thought to take still: it falls, step by step."""
RETRACT_STEPS = 20
"""Steps for which room is made when requests are retracted."""


class PrefillFirst:
    """As long as requests wait and may come in, steps compute prompts; else one token of each answer.

    - A step computes `step_tokens` of prompts at most; the prompt that does not fit whole is cut, and goes on first in
      the next step.
    - A request is admitted if its uncached tokens, its answer and a page are less than what is free or evictable,
      without what the running ones are thought to take still, and those of the same step will.
    - Once a request had to wait for that, the queue is not looked at before a running one leaves.
    - If the running ones lack room for a step, those with the shortest answers are retracted: nothing more of them is
      stored, they go to the end of the queue.
    """

    def __init__(self, options: SimOptions) -> None:
        self.cache = PageCache(options.capacity_tokens, options.granularity_tokens, options.prefix_caching)
        self._step_tokens = options.step_tokens
        self._max_running = options.max_running
        self.waiting: deque[Request[PageHold]] = deque()
        self._decoding: list[Request[PageHold]] = []
        self._prefilling: list[Request[PageHold]] = []
        """Those of the step under way; between steps, the one that was cut."""
        self._is_full = False
        self._ratio = FIRST_RATIO

    @property
    def running(self) -> list[Request[PageHold]]:
        return [*self._decoding, *self._prefilling]

    @property
    def may_clear(self) -> bool:
        return not (self._decoding or self._prefilling or self.waiting)

    def refusal(self, generation: Generation) -> str | None:
        tokens = len(generation.prompt_ids) + generation.max_tokens
        if tokens + self.cache.page_tokens < self.cache.capacity_tokens:
            return None
        return f"its {tokens} tokens do not fit into {self.cache.capacity_tokens} tokens of KV cache"

    def add(self, request: Request[PageHold]) -> None:
        self.waiting.append(request)

    def plan(self, now_s: float) -> Plan[PageHold]:
        plan: Plan[PageHold] = Plan()
        self._prefill(plan)
        if not plan.parts and self._decoding:
            self._decode(plan)
        if not plan.works:
            self._ratio = FIRST_RATIO
        return plan

    def computed(self, request: Request[PageHold]) -> None:
        self.cache.store(request)
        if not request.left:
            self._prefilling.remove(request)
            self._decoding.append(request)

    def finish(self, request: Request[PageHold]) -> None:
        self.cache.store(request)
        self._leave(request)

    def drop(self, request: Request[PageHold]) -> None:
        if request.hold.admission is None:
            self.waiting.remove(request)
            return
        if request.decoding or not request.left:  # of a prompt that is not done, the last chunk is given up
            self.cache.store(request)
        self._leave(request)

    def _leave(self, request: Request[PageHold]) -> None:
        self.cache.close(request)
        (self._decoding if request in self._decoding else self._prefilling).remove(request)
        self._is_full = False

    def _prefill(self, plan: Plan[PageHold]) -> None:
        cut = bool(self._prefilling)
        self._is_full = self._is_full and bool(self._decoding)
        if not cut and (self._is_full or not self.waiting):
            return
        budget = _Budget(self.cache, self._step_tokens, self._ratio, self._decoding)
        if cut:
            request = self._prefilling[0]
            new = min(request.left, budget.chunk_tokens())
            budget.reserve(request, new)
            plan.parts.append((request, new))
        while self.waiting and budget.step_tokens > 0:
            if len(plan.parts) + len(self._decoding) >= self._max_running:
                self._is_full = True
                break
            request = self.waiting[0]
            self.cache.open(request)
            fitting = budget.admits(request)
            if not fitting:
                self._is_full = fitting is None and bool(plan.parts or self._decoding)
                self.cache.close(request)
                request.computed = 0
                break
            budget.reserve(request, fitting)
            plan.parts.append((request, fitting))
            self._prefilling.append(self.waiting.popleft())
            if budget.left_tokens <= 0:
                self._is_full = True
                break
        self.cache.take(plan.parts)

    def _decode(self, plan: Plan[PageHold]) -> None:
        if self.cache.has_room(self._decoding):
            self._ratio = max(self._ratio - (FIRST_RATIO - LAST_RATIO) / RATIO_STEPS, LAST_RATIO)
        else:
            self._retract(plan)
        self.cache.take_one_each(self._decoding)
        plan.decodes += self._decoding

    def _retract(self, plan: Plan[PageHold]) -> None:
        """Retract at least one, until the others have room for a step."""
        kept = sorted(
            self._decoding, key=lambda one: (one.tokens - one.prompt_tokens, -one.prompt_tokens), reverse=True
        )
        while len(kept) > 1 and not (plan.preempted and self.cache.has_room(kept)):
            victim = kept.pop()
            self.cache.close(victim)
            self.cache.make_room(len(kept) * RETRACT_STEPS)
            victim.lose()
            self.waiting.append(victim)
            plan.preempted.append(victim)
        self._decoding = kept
        self._is_full = False
        said = sum([one.tokens - one.prompt_tokens for one in kept])
        asked = sum([one.end_tokens - one.prompt_tokens for one in kept])
        self._ratio = min(1.0, (said + RETRACT_STEPS * len(kept)) / (asked + 1))


class _Budget:
    """What one step may still compute, and what it leaves free."""

    def __init__(self, cache: PageCache, step_tokens: int, ratio: float, decoding: list[Request[PageHold]]) -> None:
        self.step_tokens = step_tokens
        self._cache = cache
        self._taken = ratio * sum([min(one.end_tokens - one.tokens, CLIP_TOKENS) for one in decoding])
        """What running requests are thought to take, and those of this step will."""

    @property
    def left_tokens(self) -> float:
        return self._cache.free_tokens + self._cache.evictable_tokens - self._taken

    def chunk_tokens(self) -> int:
        """For the prompt that was cut: it must go on, whatever is left."""
        left = min(self.step_tokens, int(self.left_tokens))
        return left if left > 0 else self.step_tokens

    def admits(self, request: Request[PageHold]) -> int | None:
        """How many tokens of it the step computes; 0: too few for a page, None: there is no room for it."""
        page = self._cache.page_tokens
        answer = min(request.end_tokens - request.tokens, CLIP_TOKENS)
        if request.left + answer + page >= self.left_tokens:
            return None
        return request.left if self._pages(request.left) <= self.step_tokens else self.step_tokens // page * page

    def reserve(self, request: Request[PageHold], new: int) -> None:
        pages = self._pages(new)
        answer = min(request.end_tokens - request.prompt_tokens, CLIP_TOKENS) if new == request.left else 0
        self.step_tokens -= pages
        self._taken += pages + self._cache.page_tokens + answer

    def _pages(self, tokens: int) -> int:
        page = self._cache.page_tokens
        return -(-tokens // page) * page
