"""The inside of a simulated engine: a queue, a cache, and steps that compute tokens. Pure: no clock, no I/O."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from harness.sim.answers import Answers
from harness.sim.generation import End, Generation
from harness.sim.kv.slots import SlotState
from harness.sim.options import MannerName, SimOptions
from harness.sim.policies.base import Policy
from harness.sim.policies.batched import BatchedSteps
from harness.sim.policies.mixed import MixedSteps
from harness.sim.policies.prefill_first import PrefillFirst
from harness.sim.policies.slotted import SlottedSteps
from harness.sim.request import Plan, Request
from harness.sim.step import Observer, Step

__all__ = ["Observer", "Scheduler", "SlotState", "Step"]

POLICIES: Mapping[MannerName, Callable[[SimOptions], Policy[Any]]] = {
    "vllm": MixedSteps,
    "sglang": PrefillFirst,
    "llama-cpp": SlottedSteps,
    "mlx-lm": BatchedSteps,
}


class Scheduler:
    """One engine of the options' manner. All times are simulated seconds."""

    def __init__(self, options: SimOptions, observer: Observer, words: Sequence[int]) -> None:
        """`words`: the token ids that answers are made of. Raises InputError as `SimOptions.check_engine` does."""
        options.check_engine()
        self._cost = options.hardware.cost
        self._policy = POLICIES[options.manner](options)
        self._observer = observer
        self._answers = Answers(options.seed, words)
        self._jitter, self._random = options.jitter, random.Random(f"{options.seed} jitter")
        self._requests: dict[Generation, Request[Any]] = {}
        self._step: Step | None = None

    @property
    def running(self) -> list[Generation]:
        """In the order of their admission."""
        return [request.generation for request in self._policy.running]

    @property
    def waiting(self) -> list[Generation]:
        """In the order of the queue."""
        return [request.generation for request in self._policy.waiting]

    @property
    def kv_capacity_tokens(self) -> int:
        """All the room there is (vLLM's: without the null block); what is neither used nor evictable is free."""
        return self._policy.cache.capacity_tokens

    @property
    def kv_used_tokens(self) -> int:
        """Room that requests under way hold."""
        return self._policy.cache.used_tokens

    @property
    def kv_evictable_tokens(self) -> int:
        """Room of what is kept for reuse and may be dropped."""
        return self._policy.cache.evictable_tokens

    @property
    def evicted_tokens(self) -> int:
        """Dropped from the cache since the start, where it is blocks or pages; else 0."""
        return self._policy.cache.evicted_tokens

    @property
    def slots(self) -> list[SlotState]:
        """llama.cpp: all its slots; else none."""
        return self._policy.cache.states if isinstance(self._policy, SlottedSteps) else []

    def submit(self, generation: Generation, now_s: float) -> None:
        """Put a request into the queue, or end it at once (`refusal`) if it can never fit."""
        generation.arrived_s = now_s
        self._observer.arrived(generation)
        generation.refusal = self._policy.refusal(generation)
        if generation.refusal is not None:
            self._end(generation, "abort", now_s)
            return
        length = len(generation.prompt_ids)
        request = Request(
            generation,
            self._policy.cache.hold(generation),
            self._answers.to(generation.prompt_ids).__next__,
            tokens=length,
            end_tokens=length + generation.max_tokens,
        )
        self._requests[generation] = request
        self._policy.add(request)

    def abort(self, generation: Generation, now_s: float) -> None:
        """The client hung up. What the real engine would keep of it stays in the cache. Nothing if it has ended.

        It ends at once; a step that computes it goes on with it to the step's end.
        """
        request = self._requests.pop(generation, None)
        if request is None:
            return
        self._end(generation, "abort", now_s)
        if self._step is None or not self._computes(request):
            self._policy.drop(request)

    def reset_cache(self) -> bool:
        """Empty the cache, all of it. False: the engine refuses, as requests are under way."""
        if self._step is not None or not self._policy.may_clear:
            return False
        self._policy.cache.clear()
        return True

    def erase_slot(self, number: int) -> int:
        """llama.cpp: empty one idle slot; how many tokens it held."""
        assert isinstance(self._policy, SlottedSteps)
        return self._policy.cache.erase(number)

    def slot_ids(self, number: int) -> list[int]:
        """llama.cpp: the token ids that an idle slot holds."""
        assert isinstance(self._policy, SlottedSteps)
        return self._policy.cache.ids(number)

    def fill_slot(self, number: int, ids: Sequence[int]) -> None:
        """llama.cpp: let one idle slot hold these token ids."""
        assert isinstance(self._policy, SlottedSteps)
        self._policy.cache.fill(number, ids)

    def begin(self, now_s: float) -> Step | None:
        """Admit requests and plan a step; None: there is nothing to do until the next `submit`."""
        while True:
            plan = self._policy.plan(now_s)
            for request in plan.preempted:
                self._observer.preempted(request.generation)
            for request in plan.refused:
                self._refuse(request, now_s)
            if plan.works:
                self._step = self._stepped(plan, now_s)
                return self._step
            if not plan.refused:
                return None

    def complete(self, step: Step) -> list[Generation]:
        """The step has ended, at `step.ended_s`: its tokens are there.

        Calls `notify` of each request that got a token, a part of its prompt computed, or its end; returns them.
        """
        self._step = None
        ended_s = step.ended_s
        self._observer.stepped(step)
        touched = []
        for request, new in step.plan.parts:
            generation = request.generation
            request.computed += new
            if generation.end is not None:
                self._policy.drop(request)
                continue
            self._policy.computed(request)
            generation.prefilled_tokens = min(request.computed, request.prompt_tokens)
            touched.append(generation)
            if request.computed == request.tokens:
                request.decoding = True
                self._say(request, ended_s)
        for request in step.plan.decodes:
            generation = request.generation
            request.computed += 1
            if generation.end is not None:
                self._policy.drop(request)
                continue
            touched.append(generation)
            self._say(request, ended_s)
        for generation in touched:
            generation.notify()
        return touched

    def _stepped(self, plan: Plan[Any], now_s: float) -> Step:
        """The plan as a step that begins now; what is first scheduled in it is admitted."""
        admitted = []
        prompt_tokens = context_tokens = pairs = 0
        for request, new in plan.parts:
            generation, before = request.generation, request.computed
            if generation.admitted_s is None:
                generation.admitted_s, generation.cached_tokens = now_s, before
                generation.prefilled_tokens = before
                admitted.append(generation)
                self._observer.admitted(generation)
            generation.recomputed_tokens += max(0, min(before + new, request.lost) - before)
            prompt_tokens += new
            context_tokens += before
            pairs += new * before + new * (new + 1) // 2
        decoding = len(plan.decodes)
        read = sum([request.computed for request in plan.decodes])
        duration_s = self._cost.duration_s(
            prompt_tokens + plan.padding_tokens + decoding, context_tokens + read, pairs + read + decoding
        )
        if self._jitter:
            # Of mean 1: a log-normal factor.
            duration_s *= math.exp(self._random.gauss(-(self._jitter**2) / 2, self._jitter))
        return Step(plan, now_s, duration_s, prompt_tokens, context_tokens + read, admitted)

    def _say(self, request: Request[Any], now_s: float) -> None:
        """The next token of its answer is there."""
        generation = request.generation
        token = request.next_token()
        generation.output_ids.append(token)
        request.tokens += 1
        if generation.first_token_s is None:
            generation.first_token_s = now_s
            self._observer.first_token(generation)
        if generation.stop_ids and token in generation.stop_ids:
            self._finish(request, "stop", now_s)
        elif request.tokens >= request.end_tokens:
            self._finish(request, "length", now_s)

    def _finish(self, request: Request[Any], end: End, now_s: float) -> None:
        del self._requests[request.generation]
        self._policy.finish(request)
        self._end(request.generation, end, now_s)

    def _refuse(self, request: Request[Any], now_s: float) -> None:
        generation = request.generation
        del self._requests[generation]
        generation.refusal = f"its {request.prompt_tokens} tokens of prompt do not fit into the context of a slot"
        self._end(generation, "abort", now_s)
        generation.notify()

    def _end(self, generation: Generation, end: End, now_s: float) -> None:
        generation.end, generation.ended_s = end, now_s
        self._observer.ended(generation)

    def _computes(self, request: Request[Any]) -> bool:
        """Whether the step under way computes some of it."""
        assert self._step is not None
        plan = self._step.plan
        return request in plan.decodes or any(one is request for one, _ in plan.parts)
