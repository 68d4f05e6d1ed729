"""llama.cpp's states in host memory: what is saved, what comes back, what is evicted. Examples worked out by hand."""

from __future__ import annotations

from typing import Any

from harness.cache.base import serve
from harness.cache.slots import Slots

A, B, C, D, E = (2, 80), (3, 80), (4, 80), (5, 80), (6, 80)
MORE = (8, 10)


def one_slot(**options: Any) -> Slots:
    return Slots(1, 1024, **({"host_bytes": None, "bytes_per_token": 1} | options))


def test_without_a_tier_what_was_evicted_is_gone() -> None:
    model = one_slot(host_bytes=0)
    assert [serve(model, prompt, []) for prompt in ([A], [B], [A, MORE])] == [0, 0, 0]


def test_what_was_evicted_comes_back() -> None:
    model = one_slot()
    assert [serve(model, prompt, []) for prompt in ([A], [B], [C], [A, MORE], [B, MORE])] == [0, 0, 0, 80, 80]


def test_a_state_that_is_the_beginning_of_another_is_dropped_for_it() -> None:
    model = Slots(2, 1024, host_bytes=250, bytes_per_token=1)
    # In slots 1, 0, 1, 0 and 1; at the last one [C], [A] and [B] are in the tier, and [A, MORE] is saved.
    for prompt in ([C], [A], [B], [A, MORE], [B, MORE]):
        serve(model, prompt, [])
    assert serve(model, [C, MORE], []) == 80  # [A] made room, and not [C], which is older


def test_a_state_that_would_be_used_for_less_than_a_quarter_is_left_alone() -> None:
    for length, cached in ((19, 0), (20, 20)):  # of 80
        model = one_slot()
        serve(model, [(1, length), (2, 80 - length)], [])
        serve(model, [B], [])
        assert serve(model, [(1, length), C], []) == cached


def test_a_slot_that_keeps_half_of_its_content_does_not_look_into_the_tier() -> None:
    for length, cached in ((78, 39), (79, 80)):
        model = one_slot()
        serve(model, [(1, 40), (2, 40)], [])
        assert serve(model, [(1, 39), (3, length - 39)], []) == 39  # less than half of 80: those are saved
        assert serve(model, [(1, 40), (2, 40), MORE], []) == cached


def test_a_better_state_has_the_larger_share_kept_and_the_larger_share_served() -> None:
    model = one_slot()
    serve(model, [(1, 60), (2, 100)], [])  # for the last prompt 60 of 160 kept
    serve(model, [(1, 50), (3, 30)], [])  # 50 of 80 kept, but fewer served: no better one, as it comes later
    serve(model, [B], [])
    assert serve(model, [(1, 60), (4, 60)], []) == 60


def test_half_of_a_state_is_kept_or_not_by_arithmetic_in_32_bits() -> None:
    """7 of 23, times 23 again, is less than 7 there: so 7 of 14 counts as less than half. 7 of 24 does not."""
    for prompt_tokens, cached in ((23, 14), (24, 7)):
        model = one_slot()
        serve(model, [(1, 7), (2, 7)], [])
        assert serve(model, [(1, 7), (3, prompt_tokens - 7)], []) == 7  # if less than half is kept, the rest is saved
        assert serve(model, [(1, 7), (2, 7), (4, 9)], []) == cached


def test_the_oldest_state_goes_when_bytes_run_out() -> None:
    """A state takes 80 * 10 + 8 = 808 bytes; what the slot holds is saved before the tier is looked into."""
    for limit, cached in ((3 * 808, [80, 80, 0]), (3 * 808 - 1, [80, 0, 0])):
        for number, prompt in enumerate((C, B, A)):
            model = one_slot(host_bytes=limit, bytes_per_token=10, bytes_per_state=8)
            for evicted in (A, B, C, D):
                serve(model, [evicted], [])
            assert serve(model, [prompt, MORE], []) == cached[number]


def test_a_state_larger_than_the_tier_is_not_saved_and_evicts_nothing() -> None:
    model = one_slot(host_bytes=160)
    for prompt in ([A], [(7, 161)], [B]):
        serve(model, prompt, [])
    assert serve(model, [A, MORE], []) == 80


def test_without_a_limit_in_bytes_the_tier_has_the_tokens_of_the_context() -> None:
    model = Slots(1, 256, host_bytes=None)
    for prompt in (A, B, C, D, E):
        serve(model, [prompt], [])
    assert serve(model, [A, MORE], []) == 0  # [A] made room for [D]: 3 * 80 are at most 256, 4 * 80 are not
    assert serve(model, [C, MORE], []) == 80


def test_with_a_limit_in_bytes_it_has_as_many_tokens_as_fit() -> None:
    for limit, cached in ((10_000, 80), (3_000, 0)):
        model = Slots(1, 256, host_bytes=limit, bytes_per_token=10)
        for prompt in (A, B, C, D, E):
            serve(model, [prompt], [])
        assert serve(model, [A, MORE], []) == cached


def test_what_comes_back_is_moved_not_copied() -> None:
    model = one_slot()
    serve(model, [A, B], [])
    serve(model, [C], [])
    assert serve(model, [A, (7, 100)], []) == 80  # by [A, B], the second half of which is lost
    assert serve(model, [A, B, MORE], []) == 80


def test_idle_slots_are_copied_when_a_request_starts() -> None:
    model = Slots(2, 1024, host_bytes=None)
    first = model.admit([A])  # slot 1
    model.prefilled(first)
    model.finish(first, [])
    second = model.admit([B])  # slot 0; now [A] is in host memory, too
    third = model.admit([C])
    assert (second.slot, third.slot) == (0, 1)
    for admission in (second, third):
        model.prefilled(admission)
        model.finish(admission, [])
    assert serve(model, [A, MORE], []) == 80


def test_a_copy_outlives_its_slot_which_keeps_its_own() -> None:
    model = Slots(2, 1024, host_bytes=None)
    serve(model, [A], [])  # slot 1
    serve(model, [B], [])  # slot 0
    assert model.admit([A, MORE]).cached_tokens == 80  # by the slot itself
    assert model.admit([A, D]).cached_tokens == 80  # by the copy


def test_with_a_unified_kv_cache_idle_slots_are_emptied_into_the_tier() -> None:
    model = Slots(2, 1024, host_bytes=None, unified=True)
    serve(model, [A], [])
    serve(model, [B], [])
    # Slot 1 had [A] and is empty now. A request that names an empty slot does not look into the tier.
    named = model.admit([A, MORE], slot=1)
    assert named.cached_tokens == 0
    model.abandon(named)
    model = Slots(2, 1024, host_bytes=79, bytes_per_token=1, unified=True)
    serve(model, [A], [])
    serve(model, [B], [])
    assert serve(model, [A, MORE], []) == 0  # emptied even though it was too large to be saved
