"""Whatever comes in whatever order: nothing hangs, no room is lost, and what is said depends on the prompt alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.sim.answers import Answers
from harness.sim.generation import Generation
from harness.sim.scheduler import Scheduler
from tests.sim.counting import WORDS, Counters, engine, run

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {"manner": "vllm", "page_tokens": 4, "kv_tokens": 96, "context_tokens": 90},
    "vllm with small steps": {
        "manner": "vllm",
        "page_tokens": 4,
        "kv_tokens": 96,
        "context_tokens": 90,
        "step_tokens": 6,
        "max_running": 3,
    },
    "vllm without caching": {
        "manner": "vllm",
        "page_tokens": 4,
        "kv_tokens": 96,
        "context_tokens": 90,
        "prefix_caching": False,
    },
    "sglang": {"manner": "sglang", "kv_tokens": 96, "context_tokens": 90},
    "sglang in pages": {"manner": "sglang", "page_tokens": 4, "kv_tokens": 96, "context_tokens": 90},
    "sglang in small steps": {
        "manner": "sglang",
        "page_tokens": 4,
        "kv_tokens": 96,
        "context_tokens": 90,
        "step_tokens": 8,
        "max_running": 3,
    },
    "sglang without caching": {"manner": "sglang", "kv_tokens": 96, "context_tokens": 90, "prefix_caching": False},
    "llama-cpp": {"manner": "llama-cpp", "slots": 2, "kv_tokens": 512, "context_tokens": 256},
    "llama-cpp with host memory": {
        "manner": "llama-cpp",
        "slots": 2,
        "kv_tokens": 512,
        "context_tokens": 256,
        "cache_ram_mib": 8,
    },
    "mlx-lm": {"manner": "mlx-lm", "entries": 3},
}


@dataclass(frozen=True)
class Event:
    """Numbers to choose by, taken modulo what there is to choose from."""

    kind: str
    which: int
    """Submit: which earlier sequence the prompt begins as. Abort: which request."""
    keep: int
    """Tokens that are kept of it."""
    more: tuple[int, ...]
    output_tokens: int
    option: int


_events = st.lists(
    st.builds(
        Event,
        kind=st.sampled_from(["submit", "submit", "submit", "step", "step", "step", "step", "abort", "reset"]),
        which=st.integers(0, 30),
        keep=st.integers(0, 40),
        more=st.lists(st.integers(1, 3), min_size=1, max_size=25).map(tuple),
        output_tokens=st.integers(1, 40),
        option=st.integers(0, 9),
    ),
    min_size=30,
    max_size=80,
)


class Driven:
    """An engine, and what was asked of it."""

    def __init__(self, scheduler: Scheduler, limited: bool) -> None:
        self.scheduler = scheduler
        self.limited = limited
        self.asked: list[Generation] = []
        self.now_s = 0.0
        self.reset_refused = 0

    def do(self, event: Event) -> None:
        if event.kind == "submit":
            known: Sequence[int] = ()
            if self.asked:
                earlier = self.asked[event.which % len(self.asked)]
                known = [*earlier.prompt_ids, *earlier.output_ids]
            generation = Generation(
                [*known[: event.keep], *event.more],
                event.output_tokens,
                namespace="salt" if event.option == 1 else "",
                slot=event.option % 2 if event.option in (2, 3) else None,
                reads_cache=event.option != 4,
                stop_ids=tuple(WORDS[::7]) if event.option == 5 else (),
                system_tokens=event.option,
            )
            self.asked.append(generation)
            self.scheduler.submit(generation, self.now_s)
        elif event.kind == "abort" and self.asked:
            self.scheduler.abort(self.asked[event.which % len(self.asked)], self.now_s)
        elif event.kind == "reset" and self.scheduler.reset_cache():
            assert self.scheduler.kv_evictable_tokens == 0

    def step(self, during: Sequence[Event]) -> None:
        """One step; `during` it come these events."""
        step = self.scheduler.begin(self.now_s)
        if step is None:
            return
        assert step.duration_s > 0
        self.check()
        for event in during:
            self.do(event)
        self.now_s = step.ended_s
        self.scheduler.complete(step)
        self.check()

    def check(self) -> None:
        used, evictable = self.scheduler.kv_used_tokens, self.scheduler.kv_evictable_tokens
        assert min(used, evictable) >= 0
        assert not self.limited or used + evictable <= self.scheduler.kv_capacity_tokens


@pytest.mark.parametrize("name", OPTIONS)
@given(events=_events)
@settings(max_examples=40, deadline=None)
def test_every_request_ends_as_it_should(name: str, events: list[Event]) -> None:
    counters = Counters()
    driven = Driven(engine(counters=counters, **OPTIONS[name]), limited=OPTIONS[name]["manner"] != "mlx-lm")
    while events:
        until = next((place for place, event in enumerate(events) if event.kind == "step"), len(events))
        driven.step(events[: until // 2])
        for event in events[until // 2 : until]:
            driven.do(event)
        events = events[until + 1 :]
    run(driven.scheduler, driven.now_s, most_steps=10_000)

    scheduler = driven.scheduler
    assert (scheduler.running, scheduler.waiting, scheduler.kv_used_tokens) == ([], [], 0)
    answers = Answers(0, WORDS)
    for generation in driven.asked:
        said = list(islice(answers.to(generation.prompt_ids), len(generation.output_ids)))
        assert generation.output_ids == said
        stops = [place for place, token in enumerate(said) if token in generation.stop_ids]
        if generation.end == "length":
            room = 256 - len(generation.prompt_ids) if "llama" in name else generation.max_tokens
            assert len(said) == min(generation.max_tokens, room)
            assert not stops
        elif generation.end == "stop":
            assert stops == [len(said) - 1]
        else:
            assert generation.end == "abort"
        if generation.admitted_s is not None:
            assert generation.cached_tokens is not None
            assert 0 <= generation.cached_tokens < len(generation.prompt_ids)
            assert generation.reads_cache or "mlx" in name or not generation.cached_tokens
            assert generation.arrived_s <= generation.admitted_s
        if generation.refusal is not None:
            assert generation.admitted_s is None
    ends = sum(count for what, count in counters.seen.items() if what.startswith("ended"))
    assert ends == counters.seen["requests"] == len(driven.asked)
    assert scheduler.reset_cache()
    assert scheduler.kv_evictable_tokens == 0
