"""SGLang's way to choose what a step computes; expected values are worked out by hand."""

from __future__ import annotations

import pytest

from harness.sim.scheduler import Scheduler
from tests.sim.counting import ask, asked, engine, steps


def one_step(scheduler: Scheduler) -> None:
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.complete(step)


def test_prompts_go_before_answers() -> None:
    scheduler = engine("sglang")
    scheduler.submit(asked(1, 5, 3), 0.0)
    one_step(scheduler)
    scheduler.submit(asked(2, 7, 2), 0.0)
    assert steps(scheduler) == [({2: 7}, []), ({}, [1, 2]), ({}, [1])]


def test_a_prompt_that_does_not_fit_whole_is_cut_and_goes_on_first() -> None:
    scheduler = engine("sglang", step_tokens=8)
    for request in (asked(1, 5, 2), asked(2, 13, 2), asked(3, 2, 1)):
        scheduler.submit(request, 0.0)
    assert steps(scheduler) == [({1: 5, 2: 3}, []), ({2: 8}, []), ({2: 2, 3: 2}, []), ({}, [1, 2])]


def test_a_chunk_ends_at_a_page() -> None:
    scheduler = engine("sglang", step_tokens=16, page_tokens=4)
    for request in (asked(1, 6), asked(2, 13)):  # 6 tokens are 2 pages of the 4 of a step
        scheduler.submit(request, 0.0)
    assert steps(scheduler) == [({1: 6, 2: 8}, []), ({2: 5}, [])]


def test_a_prompt_can_be_found_from_the_end_of_the_step_that_computes_it() -> None:
    scheduler = engine("sglang")
    twins = [asked(1, 14), asked(1, 14)]
    for twin in twins:
        scheduler.submit(twin, 0.0)
    steps(scheduler)
    assert [twin.cached_tokens for twin in twins] == [0, 0]
    assert ask(scheduler, twins[0].prompt_ids).cached_tokens == 13


def test_a_request_waits_until_its_answer_finds_room_too() -> None:
    # The first takes 10 + 30 tokens and a page of 64; the second needs 41 as well.
    scheduler = engine("sglang", kv_tokens=64, context_tokens=64)
    for number in (1, 2):
        scheduler.submit(asked(number, 10, 30), 0.0)
    seen = steps(scheduler)
    assert seen == [({1: 10}, []), *[({}, [1])] * 29, ({2: 10}, []), *[({}, [2])] * 29]


@pytest.mark.parametrize("warm_up_tokens", [0, 300])
@pytest.mark.parametrize(("output_tokens", "waits"), [(19, False), (20, True)])
def test_of_what_running_answers_may_still_take_seven_tenths_are_kept_for_them(
    output_tokens: int, waits: bool, warm_up_tokens: int
) -> None:
    # The first has 10 of 512 tokens, and 440 to come, of which 308 are kept: the second may have less than 194. The
    # share falls while answers are given, but after a pause it is what it was.
    scheduler = engine("sglang", kv_tokens=512, context_tokens=512)
    if warm_up_tokens:
        ask(scheduler, range(5), warm_up_tokens)
    scheduler.submit(asked(1, 10, 441), 0.0)
    one_step(scheduler)
    scheduler.submit(asked(2, 173, output_tokens), 0.0)
    expected = ({}, [1]) if waits else ({2: 173}, [])
    assert steps(scheduler, most=1) == [expected]


def test_a_page_that_is_not_full_counts_as_one_in_a_step() -> None:
    scheduler = engine("sglang", step_tokens=16, page_tokens=4)
    for request in (asked(1, 5), asked(2, 5), asked(3, 4)):
        scheduler.submit(request, 0.0)
    assert steps(scheduler) == [({1: 5, 2: 5}, []), ({3: 4}, [])]


def test_once_the_queue_had_to_wait_it_is_not_looked_at_before_one_leaves() -> None:
    scheduler = engine("sglang", kv_tokens=64, context_tokens=64)
    for request in (asked(1, 10, 3), asked(2, 10, 50), asked(3, 2, 1)):
        scheduler.submit(request, 0.0)
    assert steps(scheduler)[:4] == [({1: 10}, []), ({}, [1]), ({}, [1]), ({2: 10}, [])]


def test_not_even_where_there_would_be_room_for_it_by_now() -> None:
    # The first has 10 of 8,000 tokens and 4,000 to come: 7,990 - 2,800 are left, and the second needs just that. With
    # each step one token is taken, but nearly five fewer are kept.
    scheduler = engine("sglang", kv_tokens=8000, context_tokens=8000)
    first, second = asked(1, 10, 4001), asked(2, 2000, 3189)
    scheduler.submit(first, 0.0)
    one_step(scheduler)
    scheduler.submit(second, 0.0)
    assert steps(scheduler, most=100) == [({}, [1])] * 100
    scheduler.abort(first, 0.0)
    assert steps(scheduler, most=1) == [({2: 2000}, [])]


def five_that_are_too_many() -> Scheduler:
    """Each of the five came when seven tenths of the answers of those before were thought to come.

    They need 5 x 15 of 64 tokens. After 10 steps of answers 60 are taken, and the next needs 5.
    """
    scheduler = engine("sglang", kv_tokens=64, context_tokens=64)
    for number in range(1, 6):
        scheduler.submit(asked(number, 2, 14), 0.0)
        one_step(scheduler)
    assert len(scheduler.running) == 5
    return scheduler


def test_the_last_of_equals_is_retracted_where_the_others_lack_room() -> None:
    scheduler = five_that_are_too_many()
    fifth = scheduler.running[-1]
    seen = steps(scheduler)
    assert seen[:10] == [({}, [1, 2, 3, 4, 5])] * 10
    assert seen[10:13] == [({}, [1, 2, 3, 4])] * 3
    # With it the engine evicts as much as 20 steps of the others might need: its prompt, too.
    assert seen[13:] == [({5: 13}, []), *[({}, [5])] * 2]
    assert (fifth.preemptions, fifth.recomputed_tokens, len(fifth.output_ids)) == (1, 12, 14)


def test_who_is_retracted_goes_to_the_end_of_the_queue() -> None:
    scheduler = five_that_are_too_many()
    fifth, sixth = scheduler.running[-1], asked(6, 40, 10)
    scheduler.submit(sixth, 0.0)
    steps(scheduler, most=11)
    assert scheduler.waiting == [sixth, fifth]


def test_after_a_retraction_more_is_kept_for_those_that_run() -> None:
    # Four have said 12 tokens, and 8 are to come, all of which are kept now (11 + 20 of 14 tokens would be more than
    # all). 12 are free, so who needs 4 waits; with seven tenths there would be 6.4.
    scheduler = five_that_are_too_many()
    fifth = scheduler.running[-1]
    steps(scheduler, most=11)
    scheduler.abort(fifth, 0.0)
    scheduler.submit(asked(6, 2, 1), 0.0)
    assert steps(scheduler, most=1) == [({}, [1, 2, 3, 4])]


def test_who_has_said_least_is_retracted_first_and_of_those_the_longest_prompt() -> None:
    scheduler = engine("sglang", kv_tokens=64, context_tokens=64)
    for number, prompt_tokens in ((1, 2), (2, 3), (3, 2), (4, 2), (5, 2)):
        scheduler.submit(asked(number, prompt_tokens, 14), 0.0)
        one_step(scheduler)
    steps(scheduler, most=12)
    retracted = [one.prompt_ids[0] for one in [*scheduler.running, *scheduler.waiting] if one.preemptions]
    assert retracted == [2]


def test_an_unfinished_prompt_keeps_the_chunks_before_the_one_in_which_its_client_hung_up() -> None:
    scheduler = engine("sglang", step_tokens=8)
    request = asked(1, 30)
    scheduler.submit(request, 0.0)
    one_step(scheduler)
    one_step(scheduler)
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.abort(request, 0.0)
    scheduler.complete(step)
    assert ask(scheduler, request.prompt_ids).cached_tokens == 16
    assert scheduler.kv_used_tokens == 0


def test_a_prompt_whose_client_hung_up_in_its_last_chunk_stays() -> None:
    scheduler = engine("sglang")
    request = asked(1, 30)
    scheduler.submit(request, 0.0)
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.abort(request, 0.0)
    scheduler.complete(step)
    assert request.output_ids == []
    assert ask(scheduler, request.prompt_ids).cached_tokens == 29


def test_the_answer_of_a_client_that_hung_up_stays_as_far_as_it_was_computed() -> None:
    scheduler = engine("sglang")
    request = asked(1, 10, 50)
    scheduler.submit(request, 0.0)
    for _ in range(4):
        one_step(scheduler)
    scheduler.abort(request, 0.0)
    assert ask(scheduler, [*request.prompt_ids, *request.output_ids, 7]).cached_tokens == 13


def test_a_reset_is_refused_as_long_as_a_request_waits() -> None:
    scheduler = engine("sglang")
    ask(scheduler, list(range(10)))
    waiting = asked(1, 10)
    scheduler.submit(waiting, 0.0)
    assert not scheduler.reset_cache()
    scheduler.abort(waiting, 0.0)
    assert scheduler.kv_evictable_tokens == 13  # the last token of an answer is never stored
    assert scheduler.reset_cache()
    assert scheduler.kv_evictable_tokens == 0


def test_used_evictable_and_free_room_are_all_there_is() -> None:
    scheduler = engine("sglang", kv_tokens=64, page_tokens=4, context_tokens=64)
    scheduler.submit(asked(1, 10, 5), 0.0)
    one_step(scheduler)
    # 8 tokens are in the tree and locked, and a page holds the other two.
    assert (scheduler.kv_used_tokens, scheduler.kv_evictable_tokens) == (12, 0)
    steps(scheduler)
    assert (scheduler.kv_used_tokens, scheduler.kv_evictable_tokens) == (0, 12)


def test_namespaces_share_nothing() -> None:
    scheduler = engine("sglang")
    prompt = list(range(10))
    cached = [ask(scheduler, prompt, namespace=name).cached_tokens for name in ("", "a", "b", "a", "")]
    assert cached == [0, 0, 0, 9, 9]
