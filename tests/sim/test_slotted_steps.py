"""llama.cpp's way to choose what a step computes; expected values are worked out by hand."""

from __future__ import annotations

from harness.sim.generation import Generation
from harness.sim.scheduler import Scheduler, SlotState
from tests.sim.counting import Counters, ask, asked, engine, run, steps


def one_step(scheduler: Scheduler) -> None:
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.complete(step)


def test_a_batch_takes_the_answers_and_then_the_prompts_slot_by_slot() -> None:
    scheduler = engine("llama-cpp", slots=2, kv_tokens=8192)
    # Of slots that were never used the last goes first, so the second request has slot 0.
    for request in (asked(1, 1500, 3), asked(2, 1500, 2)):
        scheduler.submit(request, 0.0)
    assert steps(scheduler) == [({2: 1500, 1: 548}, []), ({1: 952}, [2]), ({}, [1]), ({}, [1])]


def test_the_answers_leave_the_rest_of_a_batch_to_the_prompts() -> None:
    scheduler = engine("llama-cpp", slots=2, kv_tokens=8192)
    scheduler.submit(asked(1, 5, 4), 0.0)
    one_step(scheduler)
    scheduler.submit(asked(2, 3000), 0.0)
    assert steps(scheduler) == [({2: 2047}, [1]), ({2: 953}, [1]), ({}, [1])]


def test_who_finds_no_slot_waits_for_one() -> None:
    scheduler = engine("llama-cpp", slots=1, kv_tokens=1024)
    first, second = asked(1, 5, 3), asked(2, 7, 2)
    scheduler.submit(first, 0.0)
    scheduler.submit(second, 0.0)
    one_step(scheduler)
    assert (scheduler.running, scheduler.waiting, second.admitted_s) == ([first], [second], None)
    assert steps(scheduler) == [({}, [1]), ({}, [1]), ({2: 7}, []), ({}, [2])]


def test_a_named_slot_is_waited_for() -> None:
    scheduler = engine("llama-cpp", slots=2, kv_tokens=1024)
    busy, named = asked(1, 5, 3, slot=1), asked(2, 5, 1, slot=1)
    for request in (busy, named):
        scheduler.submit(request, 0.0)
    assert steps(scheduler) == [({1: 5}, []), ({}, [1]), ({}, [1]), ({2: 5}, [])]
    assert (busy.slot, named.slot) == (1, 1)


def test_an_answer_ends_with_the_context_of_its_slot() -> None:
    scheduler = engine("llama-cpp", slots=2, kv_tokens=512)
    request = ask(scheduler, range(250), 20)
    assert (request.end, len(request.output_ids)) == ("length", 6)


def test_a_prompt_as_long_as_a_slot_is_refused_when_it_has_one() -> None:
    heard: list[str] = []
    counters = Counters()
    scheduler = engine("llama-cpp", counters, slots=1, kv_tokens=256)
    long = Generation(range(256), 5, notify=lambda: heard.append("long"))
    scheduler.submit(long, 0.0)
    assert scheduler.waiting == [long]
    assert scheduler.begin(1.0) is None
    assert (long.end, long.ended_s, long.admitted_s, heard) == ("abort", 1.0, None, ["long"])
    assert long.refusal == "its 256 tokens of prompt do not fit into the context of a slot"
    assert counters.seen == {"requests": 1, "ended by abort": 1, "output": 0}
    assert ask(scheduler, range(255), 5).end == "length"


def test_slots_tell_what_they_hold() -> None:
    scheduler = engine("llama-cpp", slots=2, kv_tokens=8192)
    assert scheduler.slots == [SlotState(0, None, None, 0), SlotState(1, None, None, 0)]
    request = asked(1, 3000, 4)
    scheduler.submit(request, 0.0)
    one_step(scheduler)
    assert scheduler.slots[1] == SlotState(1, request, request, 2048)
    one_step(scheduler)
    one_step(scheduler)
    assert scheduler.slots[1] == SlotState(1, request, request, 3001)
    run(scheduler)
    assert scheduler.slots[1] == SlotState(1, None, request, 3003)
    assert (scheduler.kv_used_tokens, scheduler.kv_evictable_tokens, scheduler.kv_capacity_tokens) == (0, 3003, 8192)
    assert (scheduler.erase_slot(1), scheduler.erase_slot(1), scheduler.erase_slot(0)) == (3003, 0, 0)
    assert scheduler.slots[1] == SlotState(1, None, request, 0)
    assert ask(scheduler, request.prompt_ids).cached_tokens == 0


def test_a_client_that_hangs_up_leaves_the_batches_that_were_computed() -> None:
    scheduler = engine("llama-cpp", slots=1, kv_tokens=8192)
    request = asked(1, 6000, 4)
    scheduler.submit(request, 0.0)
    one_step(scheduler)
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.abort(request, 0.0)
    assert scheduler.slots[0].generation is request
    scheduler.complete(step)
    assert scheduler.slots[0] == SlotState(0, None, request, 4096)
    assert ask(scheduler, request.prompt_ids).cached_tokens == 4096


def test_a_client_that_hangs_up_leaves_what_was_said() -> None:
    scheduler = engine("llama-cpp", slots=1, kv_tokens=1024)
    request = asked(1, 10, 50)
    scheduler.submit(request, 0.0)
    for _ in range(4):
        one_step(scheduler)
    scheduler.abort(request, 0.0)
    assert scheduler.slots[0].held_tokens == 13
    assert ask(scheduler, [*request.prompt_ids, *request.output_ids, 7]).cached_tokens == 13


def test_a_client_that_hangs_up_in_the_queue_leaves_nothing() -> None:
    scheduler = engine("llama-cpp", slots=1, kv_tokens=1024)
    first, second, third = (asked(number, 5, 3) for number in (1, 2, 3))
    for request in (first, second, third):
        scheduler.submit(request, 0.0)
    one_step(scheduler)
    scheduler.abort(second, 0.0)
    run(scheduler)
    assert (second.admitted_s, third.end) == (None, "length")
    assert ask(scheduler, second.prompt_ids).cached_tokens == 0


def test_a_request_may_want_to_be_computed_in_full() -> None:
    scheduler = engine("llama-cpp", slots=1, kv_tokens=1024)
    cached = [ask(scheduler, range(100), reads_cache=reads).cached_tokens for reads in (True, True, False, True)]
    assert cached == [0, 99, 0, 99]


def test_what_a_slot_loses_comes_back_from_host_memory() -> None:
    prompts = [asked(number, 300).prompt_ids for number in (1, 2, 1)]
    for cache_ram_mib, expected in ((0, [0, 0, 0]), (256, [0, 0, 299])):
        scheduler = engine("llama-cpp", slots=1, kv_tokens=1024, cache_ram_mib=cache_ram_mib)
        assert [ask(scheduler, prompt).cached_tokens for prompt in prompts] == expected
