"""vLLM's way to choose what a step computes; expected values are worked out by hand."""

from __future__ import annotations

from tests.sim.counting import ask, asked, engine, steps


def test_answers_and_prompts_share_a_step_and_prompts_are_cut_where_its_budget_ends() -> None:
    scheduler = engine("vllm", step_tokens=8, page_tokens=4, kv_tokens=256, context_tokens=128)
    for request in (asked(1, 6, 3), asked(2, 10, 2)):
        scheduler.submit(request, 0.0)
    assert steps(scheduler) == [({1: 6, 2: 2}, []), ({2: 7}, [1]), ({2: 1}, [1]), ({}, [2])]


def test_no_more_run_than_may() -> None:
    scheduler = engine("vllm", max_running=2)
    for number in (1, 2, 3):
        scheduler.submit(asked(number, 5, number), 0.0)
    assert steps(scheduler) == [({1: 5, 2: 5}, []), ({3: 5}, [2]), ({}, [3]), ({}, [3])]


def test_a_block_can_be_found_from_when_the_step_that_computes_it_is_scheduled() -> None:
    scheduler = engine("vllm", page_tokens=4)
    twins = [asked(1, 14), asked(1, 14)]
    for twin in twins:
        scheduler.submit(twin, 0.0)
    assert steps(scheduler) == [({1: 2}, [])]  # by first ids; the second computes 2 tokens behind 3 blocks
    assert [twin.cached_tokens for twin in twins] == [0, 12]


def test_who_waits_has_entered_nothing() -> None:
    scheduler = engine("vllm", page_tokens=4, max_running=1)
    first, second = asked(1, 14, 3), asked(2, 14)
    scheduler.submit(first, 0.0)
    scheduler.submit(second, 0.0)
    assert scheduler.begin(0.0) is not None
    assert (scheduler.running, scheduler.waiting) == ([first], [second])
    assert scheduler.kv_used_tokens == 16
    assert scheduler.kv_evictable_tokens == 0


def test_a_request_is_admitted_when_all_of_it_finds_room_and_not_only_its_first_chunk() -> None:
    # 8 usable blocks of 4: the first takes 5, and 3 are left for the 16 tokens of the second.
    scheduler = engine("vllm", page_tokens=4, kv_tokens=36, context_tokens=36, step_tokens=24)
    first, second = asked(1, 18, 3), asked(2, 16)
    scheduler.submit(first, 0.0)
    scheduler.submit(second, 0.0)
    assert steps(scheduler) == [({1: 18}, []), ({}, [1]), ({}, [1]), ({2: 16}, [])]


def test_who_was_admitted_last_is_preempted_and_looks_its_own_blocks_up_again() -> None:
    # 8 usable blocks of 4. Each has 3 for its prompt and takes a fourth with its second token. For the fifth of the
    # first request none is left. It takes blocks 4 and 3 of the second one then, whose tail goes first.
    scheduler = engine("vllm", page_tokens=4, kv_tokens=36, context_tokens=36)
    first, second = asked(1, 12, 10), asked(2, 12, 10)
    scheduler.submit(first, 0.0)
    scheduler.submit(second, 0.0)
    seen = steps(scheduler)
    assert seen[:6] == [({1: 12, 2: 12}, []), *[({}, [1, 2])] * 4, ({}, [1])]
    assert seen[6:] == [*[({}, [1])] * 4, ({2: 9}, []), *[({}, [2])] * 4]
    assert (first.preemptions, second.preemptions) == (0, 1)
    assert (second.cached_tokens, second.recomputed_tokens) == (0, 8)  # 16 were computed, of which 8 were still there
    assert len(second.output_ids) == 10
    assert scheduler.kv_used_tokens == 0


def test_in_a_step_that_preempts_nothing_is_admitted() -> None:
    scheduler = engine("vllm", page_tokens=4, kv_tokens=36, context_tokens=36)
    for number in (1, 2):
        scheduler.submit(asked(number, 12, 10), 0.0)
    for _ in range(5):
        step = scheduler.begin(0.0)
        assert step is not None
        scheduler.complete(step)
    small = asked(3, 2)
    scheduler.submit(small, 0.0)
    step = scheduler.begin(0.0)
    assert step is not None
    assert [one.prompt_ids[0] for one in step.decodes] == [1]
    assert [one.prompt_ids[0] for one in scheduler.waiting] == [2, 3]


def test_what_a_client_that_hung_up_had_computed_stays() -> None:
    scheduler = engine("vllm", page_tokens=4)
    request = asked(1, 10, 50)
    scheduler.submit(request, 0.0)
    for _ in range(4):  # the prompt and 3 tokens: 13 computed, 14 known
        step = scheduler.begin(0.0)
        assert step is not None
        scheduler.complete(step)
    scheduler.abort(request, 1.0)
    assert (request.end, request.ended_s, len(request.output_ids)) == ("abort", 1.0, 4)
    assert scheduler.kv_used_tokens == 0
    again = ask(scheduler, [*request.prompt_ids, *request.output_ids, 7, 7, 7])
    assert again.cached_tokens == 12


def test_one_that_hangs_up_within_a_step_keeps_its_blocks_to_the_end_of_it() -> None:
    scheduler = engine("vllm", page_tokens=4)
    request = asked(1, 10, 50)
    scheduler.submit(request, 0.0)
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.abort(request, 0.001)
    assert (request.end, scheduler.kv_used_tokens) == ("abort", 12)
    assert scheduler.complete(step) == []
    assert (request.output_ids, scheduler.kv_used_tokens, scheduler.running) == ([], 0, [])


def test_a_reset_is_refused_as_long_as_blocks_are_in_use() -> None:
    scheduler = engine("vllm", page_tokens=4)
    request = asked(1, 10, 2)
    scheduler.submit(request, 0.0)
    assert scheduler.begin(0.0) is not None
    assert not scheduler.reset_cache()
    scheduler = engine("vllm", page_tokens=4)
    ask(scheduler, request.prompt_ids)
    assert ask(scheduler, request.prompt_ids).cached_tokens == 8
    assert scheduler.reset_cache()
    assert ask(scheduler, request.prompt_ids).cached_tokens == 0


def test_namespaces_share_nothing() -> None:
    scheduler = engine("vllm", page_tokens=4)
    prompt = list(range(10))
    cached = [ask(scheduler, prompt, namespace=name).cached_tokens for name in ("", "a", "b", "a", "")]
    assert cached == [0, 0, 0, 8, 8]


def test_without_prefix_caching_nothing_is_found_and_no_room_is_lost() -> None:
    scheduler = engine("vllm", page_tokens=4, prefix_caching=False)
    prompt = list(range(10))
    assert [ask(scheduler, prompt).cached_tokens for _ in range(2)] == [0, 0]
    assert (scheduler.kv_used_tokens, scheduler.kv_evictable_tokens) == (0, 0)
