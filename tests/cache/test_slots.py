"""llama.cpp's slots: which slot a request takes, and what is still there. Examples worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cache.base import Prompt, serve
from harness.cache.held import Held
from harness.cache.slots import SlotAdmission, Slots
from harness.errors import InputError

SYSTEM, A, B, C, D = (1, 20), (2, 80), (3, 80), (4, 80), (5, 80)
SAID, MORE = (9, 5), (8, 10)


def slots(count: int, context_tokens: int = 1024, **options: Any) -> Slots:
    return Slots(count, context_tokens, **options)


def turn(model: Slots, prompt: Prompt, slot: int | None = None) -> tuple[int, int]:
    """A request from beginning to end: the slot that it took, and its cached tokens."""
    admission = model.admit(prompt, slot=slot)
    end(model, admission)
    assert admission.slot is not None
    return admission.slot, admission.cached_tokens


def end(model: Slots, admission: SlotAdmission) -> None:
    model.prefilled(admission)
    model.finish(admission, [SAID])


def test_a_slot_holds_prompt_and_output_without_the_last_token() -> None:
    model = slots(1)
    assert serve(model, [A], [SAID]) == 0
    assert serve(model, [A, SAID, B], [SAID]) == 84
    assert serve(model, [A, SAID, B], []) == 164  # all but the last token, which is computed again
    assert serve(model, [A, C], [(9, 1)]) == 80
    assert serve(model, [A, C, (9, 1), D], []) == 160


def test_the_slot_that_serves_the_largest_share_is_taken() -> None:
    model = slots(3)
    assert turn(model, [SYSTEM, A]) == (2, 0)
    assert turn(model, [SYSTEM, B], slot=1) == (1, 0)
    assert turn(model, [SYSTEM, C], slot=0) == (0, 0)
    assert turn(model, [SYSTEM, B, D]) == (1, 100)
    assert turn(model, [SYSTEM, D]) == (0, 20)  # each has the 20 tokens: the first one


def test_a_share_has_to_be_more_than_the_similarity() -> None:
    model = slots(2)
    turn(model, [(1, 20)])
    assert turn(model, [(1, 20), (2, 180)]) == (0, 0)  # a tenth of it is not enough
    model.clear()
    turn(model, [(1, 20)])
    assert turn(model, [(1, 20), (2, 179)]) == (1, 20)


def test_else_the_slot_that_was_released_first_is_taken() -> None:
    model = slots(3)
    assert [turn(model, [prompt])[0] for prompt in (A, B, C)] == [2, 1, 0]  # the last of those never used
    assert turn(model, [A, SAID]) == (2, 84)
    assert turn(model, [D]) == (1, 0)  # that of B
    assert turn(model, [B]) == (0, 0)


def test_a_busy_slot_is_not_taken() -> None:
    model = slots(2)
    first, second = model.admit([A]), model.admit([A, B])
    assert (first.slot, second.slot, second.cached_tokens) == (1, 0, 0)


def test_who_finds_no_idle_slot_waits_for_the_next_one() -> None:
    model = slots(2)
    first, second = model.admit([A]), model.admit([B])
    third, fourth = model.admit([A, MORE]), model.admit([A, MORE, MORE])
    assert (third.slot, fourth.slot) == (None, None)
    end(model, second)
    assert (third.slot, third.cached_tokens, fourth.slot) == (0, 0, None)
    end(model, first)
    assert (fourth.slot, fourth.cached_tokens) == (1, 80)


def test_a_slot_goes_to_who_waits_for_it_by_name() -> None:
    model = slots(2)
    first, second = model.admit([A]), model.admit([B])  # in slots 1 and 0
    third, fourth, fifth = model.admit([C]), model.admit([D], slot=0), model.admit([D], slot=1)
    end(model, second)
    assert (third.slot, fourth.slot, fifth.slot) == (None, 0, None)
    end(model, first)
    assert (third.slot, fifth.slot) == (None, 1)
    end(model, fourth)
    assert third.slot == 0


def test_who_waits_by_name_is_the_last_if_another_slot_came_up() -> None:
    model = slots(3)
    first, second, _ = (model.admit([prompt]) for prompt in (A, B, C))  # in slots 2, 1 and 0
    third, fourth = model.admit([D], slot=0), model.admit([MORE])
    end(model, first)
    assert (third.slot, fourth.slot) == (None, None)  # slot 2 is idle
    end(model, second)
    assert (third.slot, fourth.slot) == (None, 2)


def test_who_gives_up_waiting_leaves_nothing() -> None:
    model = slots(1)
    first, second, third = (model.admit([prompt]) for prompt in (A, B, C))
    model.abandon(second)
    end(model, first)
    assert (second.slot, third.slot) == (None, 0)
    end(model, third)
    assert turn(model, [B]) == (0, 0)


def test_the_order_of_release_counts_not_that_of_admission() -> None:
    model = slots(2)
    first, second = model.admit([A]), model.admit([B])
    for admission in (second, first):
        end(model, admission)
    assert model.admit([C]).slot == second.slot


def test_a_request_that_is_given_up_leaves_what_was_computed() -> None:
    model = slots(1, context_tokens=8192)
    early = model.admit([(1, 5000)])
    model.abandon(early)
    late = model.admit([(1, 5000)])
    assert late.cached_tokens == 2048  # one batch
    model.prefilled(late)
    model.abandon(late)
    assert serve(model, [(1, 5000), (2, 10)], []) == 5000


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    model = slots(2, context_tokens=1000)  # 500 each, which is rounded up to 512
    assert serve(model, [(1, 511)], []) == 0
    refused = model.admit([(1, 512)])
    assert (refused.refused, refused.cached_tokens) == (True, 0)
    model.prefilled(refused)
    model.finish(refused, [])
    assert serve(model, [(1, 511)], []) == 510  # what its slot held is still there


def test_a_request_without_prompt_caching_still_leaves_its_prompt() -> None:
    model = slots(1)
    serve(model, [A], [])
    assert model.admit([A], cache_prompt=False).cached_tokens == 0
    model.clear()
    assert serve(model, [A], []) == 0


def test_a_unified_cache_purges_the_first_idle_slots_for_a_prompt() -> None:
    model = slots(3, context_tokens=256, unified=True)
    for slot, prompt in enumerate((A, B, C)):
        turn(model, [prompt], slot)  # 3 * 84 = 252 tokens
    working = model.admit([C, SAID, MORE])  # 11 more: slot 0 is purged
    assert (working.slot, model.admit([B]).cached_tokens, model.admit([A]).cached_tokens) == (2, 79, 0)


def test_a_unified_cache_purges_the_first_idle_slots_for_an_answer() -> None:
    for answer_tokens, cached in ((16, 79), (17, 0)):
        model = slots(3, context_tokens=256, unified=True)
        turn(model, [A], 0)
        turn(model, [B], 1)  # 2 * 84 tokens
        working = model.admit([(4, 73)])
        model.prefilled(working)
        model.finish(working, [(9, answer_tokens)])
        assert turn(model, [A]) == (0, cached)


def test_after_a_clear_all_is_as_at_the_start() -> None:
    model = slots(2, host_bytes=None)
    before = [turn(model, [prompt]) for prompt in (A, B, C)]
    model.clear()
    assert [turn(model, [prompt]) for prompt in (A, B, C)] == before == [(1, 0), (0, 0), (1, 0)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"slots": 0},
        {"context_tokens": 0},
        {"similarity": 1.5},
        {"host_bytes": -1},
        {"host_bytes": 1024},  # and what does a state take of it?
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="give"):
        Slots(**({"slots": 1, "context_tokens": 256} | wrong))


@pytest.mark.parametrize("slot", [-1, 2])
def test_a_slot_that_is_not_there_is_refused(slot: int) -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        slots(2).admit([A], slot=slot)


def test_who_watches_is_told_of_each_request_before_it_gets_its_slot() -> None:
    seen: list[tuple[int | None, int, bool]] = []

    def look(admission: SlotAdmission) -> None:
        seen.append((admission.slot, model.computed(admission.prompt), admission.refused))

    model = slots(1, on_start=look)
    first, second = model.admit([A]), model.admit([A, B])
    assert seen == [(None, 0, False)]  # the second one waits
    end(model, first)
    assert seen[1:] == [(None, 80, False)]  # what the first one left, before the second one took its place
    end(model, second)
    model.admit([A, (7, 2000)])
    assert seen[2:] == [(None, 80, True)]


def test_a_slot_has_computed_what_it_holds_or_what_it_found_if_it_is_still_at_work() -> None:
    model = slots(2)
    turn(model, [SYSTEM, A], slot=0)
    under_way = model.admit([SYSTEM, A, B], slot=0)
    wanted = Held.of([SYSTEM, A, B, C])
    assert (under_way.cached_tokens, model.computed(wanted)) == (100, 100)
    model.prefilled(under_way)
    assert model.computed(wanted) == 180
    assert model.computed(Held.of([SYSTEM, C])) == 20
    assert model.computed(Held.of([D])) == 0
