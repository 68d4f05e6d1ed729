"""The truth of a simulated engine: its counters are the sums of what its requests report, and what the model says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from harness.cache.base import CacheModel, serve
from harness.cache.block_pool import BlockPool
from harness.cache.entries import Entries
from harness.cache.radix import RadixTree
from harness.cache.slots import Slots
from harness.sim.generation import Generation
from harness.sim.kv.items import items
from harness.sim.options import MannerName
from tests.sim.counting import Counters, Sessions, engine, run

REQUESTS = 10_000
KV_TOKENS, STEP_TOKENS, BLOCK, SLOTS, SLOT_TOKENS, ENTRIES = 768, 64, 8, 3, 512, 5
"""Room for a few of the prompts, so that most of what is kept is lost before it is asked for again."""
HOST_MIB = 64
"""For nearly four of the longest prompts, at 128 KiB a token."""
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {"manner": "vllm", "page_tokens": BLOCK, "kv_tokens": KV_TOKENS},
    "sglang": {"manner": "sglang", "kv_tokens": KV_TOKENS},
    "sglang in pages": {"manner": "sglang", "page_tokens": BLOCK, "kv_tokens": KV_TOKENS},
    "llama-cpp": {"manner": "llama-cpp", "slots": SLOTS, "kv_tokens": SLOTS * SLOT_TOKENS},
    "llama-cpp with host memory": {
        "manner": "llama-cpp",
        "slots": SLOTS,
        "kv_tokens": SLOTS * SLOT_TOKENS,
        "cache_ram_mib": HOST_MIB,
    },
    "mlx-lm": {"manner": "mlx-lm", "entries": ENTRIES},
}
MODELS: Mapping[str, Callable[[], CacheModel[Any]]] = {
    "vllm": lambda: BlockPool(KV_TOKENS // BLOCK, BLOCK),
    "sglang": lambda: RadixTree(KV_TOKENS, 1, STEP_TOKENS),
    "sglang in pages": lambda: RadixTree(KV_TOKENS, BLOCK, STEP_TOKENS),
    "llama-cpp": lambda: Slots(SLOTS, SLOTS * SLOT_TOKENS),
    "llama-cpp with host memory": lambda: Slots(
        SLOTS, SLOTS * SLOT_TOKENS, host_bytes=HOST_MIB * 2**20, bytes_per_token=131_072 + 12, bytes_per_state=236
    ),
    "mlx-lm": lambda: Entries(ENTRIES),
}


MODELS_WITHOUT_END: Mapping[MannerName, Callable[[], CacheModel[Any]]] = {
    "vllm": lambda: BlockPool(None, BLOCK),
    "sglang": lambda: RadixTree(None),
    "llama-cpp": lambda: RadixTree(None),
    "mlx-lm": lambda: RadixTree(None),
}


def tokens(served: Sequence[Generation]) -> tuple[int, int]:
    """Of all prompts, and of all answers."""
    return sum(len(one.prompt_ids) for one in served), sum(len(one.output_ids) for one in served)


@pytest.mark.parametrize("name", OPTIONS)
def test_one_request_after_the_other_is_served_as_the_model_says(name: str) -> None:
    counters, sessions, model = Counters(), Sessions(seed=1, sessions=12), MODELS[name]()
    scheduler = engine(counters=counters, context_tokens=512, step_tokens=STEP_TOKENS, **OPTIONS[name])
    now_s, served, predicted = 0.0, [], []
    for session, generation in sessions.generations(REQUESTS):
        scheduler.submit(generation, now_s)
        now_s = run(scheduler, now_s)
        assert generation.end == "length"
        sessions.heard(session, generation.output_ids)
        served.append(generation)
        predicted.append(serve(model, items(generation.prompt_ids), items(generation.output_ids)))

    assert [generation.cached_tokens for generation in served] == predicted
    prompt, output = tokens(served)
    assert counters.seen == {
        "requests": REQUESTS,
        "first tokens": REQUESTS,
        "ended by length": REQUESTS,
        "prompt": prompt,
        "output": output,
        "cached": sum(predicted),
        "cached in steps": sum(predicted),
        "computed": prompt - sum(predicted) + output - REQUESTS,
        "steps": counters.seen["steps"],
    }
    if isinstance(model, RadixTree):
        assert scheduler.evicted_tokens == model.evicted_tokens
    if isinstance(model, BlockPool):
        assert scheduler.evicted_tokens == model.evicted_blocks * BLOCK
    # There is something to be right about: with all the room of the world it would be more.
    endless = MODELS_WITHOUT_END[OPTIONS[name]["manner"]]()
    possible = sum(serve(endless, items(one.prompt_ids), items(one.output_ids)) for one in served)
    assert 0.1 * possible < sum(predicted) < 0.9 * possible


@pytest.mark.parametrize("name", OPTIONS)
def test_of_many_at_once_nothing_is_lost_and_nothing_counted_twice(name: str) -> None:
    counters, sessions = Counters(), Sessions(seed=2, sessions=24)
    scheduler = engine(counters=counters, context_tokens=512, step_tokens=1024, **OPTIONS[name])
    free, under_way, served = list(range(24)), dict[int, Generation](), list[Generation]()
    now_s, sent = 0.0, 0
    while sent < REQUESTS or under_way:
        while free and sent < REQUESTS and sessions.random.random() < 0.6:
            session = free.pop(sessions.random.randrange(len(free)))
            generation = Generation(sessions.next_prompt(session), sessions.random.randint(1, 60))
            scheduler.submit(generation, now_s)
            under_way[session], sent = generation, sent + 1
        step = scheduler.begin(now_s)
        if step is None:
            continue
        now_s = step.ended_s
        assert scheduler.kv_used_tokens + scheduler.kv_evictable_tokens <= scheduler.kv_capacity_tokens or (
            OPTIONS[name]["manner"] == "mlx-lm"
        )
        scheduler.complete(step)
        for session, generation in [one for one in under_way.items() if one[1].end is not None]:
            sessions.heard(session, generation.output_ids)
            served.append(under_way.pop(session))
            free.append(session)

    assert len(served) == REQUESTS
    assert {generation.end for generation in served} == {"length"}
    assert all(len(generation.output_ids) == generation.max_tokens for generation in served)
    prompt, output = tokens(served)
    cached = sum(generation.cached_tokens or 0 for generation in served)
    assert (counters.seen["prompt"], counters.seen["output"], counters.seen["cached"]) == (prompt, output, cached)
    assert cached > 0
    preemptions = sum(generation.preemptions for generation in served)
    assert counters.seen["preemptions"] == preemptions
    assert (preemptions > 0) == (OPTIONS[name]["manner"] in ("vllm", "sglang"))
    recomputed = sum(generation.recomputed_tokens for generation in served)
    assert counters.seen["computed"] == prompt - cached + output - REQUESTS + recomputed
    assert (scheduler.running, scheduler.waiting, scheduler.kv_used_tokens) == ([], [], 0)
    assert scheduler.reset_cache()
    assert scheduler.kv_evictable_tokens == 0
