"""mlx-lm's way to choose what a step computes; expected values are worked out by hand."""

from __future__ import annotations

from harness.sim.policies.batched import LOOK_S
from tests.sim.counting import ask, asked, engine, run, steps


def test_the_last_token_of_a_prompt_is_computed_with_the_answers() -> None:
    scheduler = engine("mlx-lm")
    scheduler.submit(asked(1, 3000, 3), 0.0)
    assert steps(scheduler) == [({1: 2048}, []), ({1: 951}, []), ({1: 1}, []), ({}, [1]), ({}, [1])]


def test_prompts_of_one_step_are_filled_up_to_the_longest() -> None:
    scheduler = engine("mlx-lm")
    for request in (asked(1, 101), asked(2, 11)):
        scheduler.submit(request, 0.0)
    step = scheduler.begin(0.0)
    assert step is not None
    assert [new for _, new in step.prefills] == [100, 10]
    assert (step.prompt_tokens, step.plan.padding_tokens) == (110, 90)
    alone = engine("mlx-lm")
    alone.submit(asked(1, 201), 0.0)
    other = alone.begin(0.0)
    assert other is not None
    # 200 tokens each, but those that fill up look at nothing.
    assert 0.9 * other.duration_s < step.duration_s < other.duration_s


def test_eight_prompts_go_on_at_a_time_and_as_long_as_32_answers_are_under_way_none() -> None:
    scheduler = engine("mlx-lm")
    for number in range(1, 42):
        scheduler.submit(asked(number, 2, 40), 0.0)
    seen = steps(scheduler, most=10)
    # Of each eight the first tokens, then the last ones; the next eight come in when those have left.
    assert [len(prompts) for prompts, _ in seen] == [8, 8, 8, 8, 8, 8, 8, 8, 0, 0]
    assert [len(answers) for _, answers in seen] == [0, 0, 8, 8, 16, 16, 24, 24, 32, 32]


def test_a_prompt_that_is_not_done_waits_as_well_while_32_answers_are_under_way() -> None:
    scheduler = engine("mlx-lm")
    for number in range(1, 32):
        scheduler.submit(asked(number, 2, 40), 0.0)
    scheduler.submit(asked(100, 9000), 0.0)
    scheduler.submit(asked(32, 2, 40), 0.0)
    seen = steps(scheduler)
    stopped = [prompts for prompts, answers in seen if len(answers) == 32]
    assert len(stopped) > 20
    assert not any(stopped)
    assert [prompts[100] for prompts, _ in seen if 100 in prompts] == [2048, 2048, 2048, 2048, 807, 1]


def test_who_comes_while_a_batch_runs_is_looked_at_after_a_while() -> None:
    scheduler = engine("mlx-lm", preset="rtx4090-8b")
    first, second = asked(1, 2, 100), asked(2, 2)
    scheduler.submit(first, 0.0)
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.submit(second, step.ended_s / 2)
    scheduler.complete(step)
    run(scheduler, step.ended_s)
    assert second.admitted_s is not None
    assert LOOK_S < second.admitted_s < LOOK_S + 0.1


def test_a_prompt_stops_behind_the_system_message() -> None:
    scheduler = engine("mlx-lm")
    scheduler.submit(asked(1, 30, system_tokens=10), 0.0)
    assert steps(scheduler) == [({1: 10}, []), ({1: 19}, []), ({1: 1}, [])]
    scheduler.submit(asked(1, 30, system_tokens=10), 0.0)
    assert steps(scheduler) == [({1: 1}, [])]


def test_a_finished_request_leaves_prompt_and_answer_and_its_last_token_too() -> None:
    scheduler = engine("mlx-lm")
    first = ask(scheduler, range(10), 5)
    assert scheduler.kv_evictable_tokens == 15
    assert ask(scheduler, [*first.prompt_ids, *first.output_ids, 7]).cached_tokens == 15


def test_a_client_that_hangs_up_leaves_its_prompt_as_far_as_there_is_an_entry_for_it() -> None:
    scheduler = engine("mlx-lm")
    request = asked(1, 3000, 5, system_tokens=100)
    scheduler.submit(request, 0.0)
    for _ in range(2):  # behind the system message, and 2,048 tokens more
        step = scheduler.begin(0.0)
        assert step is not None
        scheduler.complete(step)
    scheduler.abort(request, 0.0)
    assert scheduler.kv_evictable_tokens == 100
    assert ask(scheduler, request.prompt_ids).cached_tokens == 100


def test_the_step_in_which_a_client_hangs_up_leaves_what_it_reached() -> None:
    scheduler = engine("mlx-lm")
    request = asked(1, 3000, 5, system_tokens=100)
    scheduler.submit(request, 0.0)
    step = scheduler.begin(0.0)
    assert step is not None
    scheduler.abort(request, 0.0)
    scheduler.complete(step)
    assert scheduler.kv_evictable_tokens == 100


def test_the_store_keeps_as_many_entries_as_it_may() -> None:
    prompts = [asked(number, 20).prompt_ids for number in (1, 2, 3, 1)]
    for options, expected in (({"entries": 3}, 19), ({"entries": 2}, 0), ({"prefix_caching": False}, 0)):
        scheduler = engine("mlx-lm", **options)
        assert [ask(scheduler, prompt).cached_tokens for prompt in prompts][-1] == expected
