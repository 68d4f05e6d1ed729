"""mlx-lm's store of entries: what is added, dropped and evicted. Examples worked out by hand."""

from __future__ import annotations

import pytest

from harness.cache.base import Prompt, serve
from harness.cache.entries import Entries
from harness.errors import InputError

SYSTEM, A, B, C, D = (1, 20), (2, 80), (3, 80), (4, 80), (5, 80)
SAID, MORE = (9, 5), (8, 10)


def hang_up(model: Entries, prompt: Prompt, system_tokens: int = 0) -> int:
    """A request whose client leaves after the first token; its cached tokens."""
    admission = model.admit(prompt, system_tokens=system_tokens)
    model.prefilled(admission)
    model.abandon(admission)
    return admission.cached_tokens


def test_an_entry_is_the_prompt_and_the_whole_output() -> None:
    model = Entries()
    assert serve(model, [A], [SAID]) == 0
    assert serve(model, [A, SAID, B], [SAID]) == 85
    assert serve(model, [A, SAID, B], [SAID]) == 164  # all but the last token, which is computed again
    assert serve(model, [A, C], [SAID]) == 80


def test_the_first_one_in_goes_first_however_often_it_is_read() -> None:
    model = Entries(size=2)
    serve(model, [SYSTEM, A], [SAID])
    serve(model, [SYSTEM, B], [SAID])
    assert serve(model, [SYSTEM, A, MORE], [SAID]) == 100  # not an extension: the answer is not repeated
    assert serve(model, [SYSTEM, A, C], [SAID]) == 100  # by [SYSTEM, A, MORE], as [SYSTEM, A, SAID] has gone
    assert serve(model, [SYSTEM, B, C], [SAID]) == 20


def test_a_session_that_grows_has_one_entry_which_is_young_again() -> None:
    model = Entries(size=2)
    serve(model, [A], [SAID])
    serve(model, [B], [SAID])
    assert serve(model, [A, SAID, C], [SAID]) == 85
    serve(model, [D], [SAID])  # evicts [B]
    assert serve(model, [A, SAID, C, SAID, D], [SAID]) == 170
    assert serve(model, [B, C], [SAID]) == 0


def test_a_repetition_makes_its_entry_young_again() -> None:
    model = Entries(size=2)
    for prompt in (A, B, A, C):
        serve(model, [prompt], [SAID])
    assert serve(model, [A, D], [SAID]) == 80


@pytest.mark.parametrize(("size", "cached"), [(0, 0), (1, 79)])
def test_a_store_for_nothing_and_one_for_one(size: int, cached: int) -> None:
    model = Entries(size)
    assert [serve(model, [prompt], [SAID]) for prompt in (A, A, B, A)] == [0, cached, 0, 0]


def test_who_hangs_up_leaves_the_prompt_without_its_last_token() -> None:
    model = Entries()
    assert hang_up(model, [A]) == 0
    assert serve(model, [A, MORE], [SAID]) == 79


def test_who_hangs_up_before_the_first_token_leaves_nothing() -> None:
    model = Entries()
    model.abandon(model.admit([A]))
    assert serve(model, [A], [SAID]) == 0


def test_finished_requests_go_before_those_that_were_given_up_unless_these_are_more() -> None:
    model = Entries(size=3)
    serve(model, [A], [SAID])
    hang_up(model, [B])
    serve(model, [C], [SAID])
    hang_up(model, [D])  # 2 finished and 2 that were given up: [A] goes
    hang_up(model, [MORE, A])  # 1 and 3: [B] goes
    assert [hang_up(model, [prompt, SAID]) for prompt in (C, D, B, A)] == [84, 79, 0, 0]


def test_a_system_message_of_a_request_that_is_given_up_goes_into_its_prompt() -> None:
    model = Entries(size=2)
    hang_up(model, [SYSTEM, A], system_tokens=20)
    hang_up(model, [SYSTEM, B], system_tokens=20)
    assert [hang_up(model, [SYSTEM, prompt, MORE], 20) for prompt in (A, B)] == [99, 99]


def test_a_system_message_can_cost_a_finished_entry_where_the_prompt_alone_would_not() -> None:
    """Of 2 finished, 2 given up and 1 system message, a finished one goes; of 2 and 3, one that was given up."""
    for system_tokens, cached in ((0, 80), (20, 0)):
        model = Entries(size=4)
        serve(model, [A], [])
        serve(model, [B], [])
        hang_up(model, [C])
        hang_up(model, [D])
        hang_up(model, [SYSTEM, (7, 50)], system_tokens)
        assert serve(model, [A, MORE], []) == cached


def test_bytes_are_counted_when_a_request_starts() -> None:
    model = Entries(limit_bytes=2000, bytes_per_token=10)
    for prompt in (A, B, C):
        serve(model, [prompt], [])
    # 240 tokens, as the last one was added after the look: now [A] goes.
    assert serve(model, [D], []) == 0
    assert serve(model, [A, MORE], []) == 0


def test_what_requests_hold_counts_too_at_the_full_length_of_the_entry() -> None:
    for limit, cached in ((3200, 80), (3199, 0)):
        model = Entries(limit_bytes=limit, bytes_per_token=10)
        for prompt in (A, B, C):
            serve(model, [prompt], [])
        assert serve(model, [(4, 5), D], []) == 5  # by a copy of [C], all 80 tokens: 4 * 80 tokens with the entries
        assert serve(model, [A, MORE], []) == cached


def test_a_request_under_way_holds_its_prompt() -> None:
    for limit, cached in ((2790, 80), (2789, 0)):
        model = Entries(limit_bytes=limit, bytes_per_token=10)
        serve(model, [A], [])
        model.prefilled(model.admit([(1, 100)]))  # 100 tokens of its own, and an entry of 99
        model.admit([B])
        assert serve(model, [A, MORE], []) == cached


def test_of_two_entries_that_serve_alike_the_shorter_is_copied() -> None:
    for limit, cached in ((1950, 80), (1949, 0)):
        model = Entries(limit_bytes=limit, bytes_per_token=10)
        for prompt in ([A], [(1, 5), (7, 10)], [(1, 5), B]):
            serve(model, prompt, [])  # 80, 15 and 85 tokens
        assert serve(model, [(1, 5), C], []) == 5  # with a copy of the second, 195 tokens
        assert serve(model, [A, MORE], []) == cached


def test_requests_at_the_same_time_each_find_what_is_there_when_they_start() -> None:
    model = Entries()
    first, second = model.admit([SYSTEM, A]), model.admit([SYSTEM, B])
    model.prefilled(first)
    third = model.admit([SYSTEM, A, C])
    assert [one.cached_tokens for one in (first, second, third)] == [0, 0, 99]
    for admission in (second, third):
        model.prefilled(admission)
    for admission in (third, first, second):
        model.finish(admission, [SAID])
    assert serve(model, [SYSTEM, A, C, SAID, D], []) == 185


def test_after_a_clear_nothing_is_there() -> None:
    model = Entries()
    serve(model, [A], [SAID])
    model.clear()
    assert serve(model, [A], [SAID]) == 0


def test_a_store_without_end_evicts_nothing() -> None:
    model = Entries(None)
    for number in range(50):
        serve(model, [(number, 10)], [])
    assert serve(model, [(0, 10), MORE], []) == 10


@pytest.mark.parametrize("wrong", [{"size": -1}, {"limit_bytes": 1024}, {"limit_bytes": -1, "bytes_per_token": 1}])
def test_what_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="give"):
        Entries(**wrong)
