"""How much may follow a prompt before it is gone, found in few trials."""

from __future__ import annotations

import pytest

from harness.checks.evict_search import PRECISION, Room, Sizes, Trials, most_prompts, most_tokens
from harness.checks.sight import Seen


def never() -> bool:
    return False


@pytest.mark.parametrize("capacity", range(70))
def test_the_number_of_prompts_is_found_exactly(capacity: int) -> None:
    tried: list[int] = []

    def held(number: int) -> bool:
        tried.append(number)
        return number <= capacity

    room = most_prompts(held, 64, never)
    assert room == (Room(capacity, capacity + 1, True) if capacity < 64 else Room(64, None, False))
    assert len(tried) <= 14
    assert [number for number in set(tried) if tried.count(number) > 1] == ([capacity + 1] if capacity < 64 else [])


def test_a_prompt_that_was_lost_by_accident_is_not_taken_for_the_room() -> None:
    """The third trial falls into a restart, or another client's requests."""
    tried: list[int] = []

    def held(number: int) -> bool:
        tried.append(number)
        return number <= 9 and len(tried) != 3

    assert most_prompts(held, 64, never) == Room(9, 10, True)
    assert tried[:5] == [1, 2, 4, 3, 4]


@pytest.mark.parametrize("capacity", [1, 127, 128, 500, 1000, 4096, 100_000])
@pytest.mark.parametrize("first", [128, 512, 4000])
@pytest.mark.parametrize("hints", [[], [50], [4096 - 512], [10**6]])
def test_tokens_are_found_to_the_precision_whatever_the_hint(capacity: int, first: int, hints: list[int]) -> None:
    room = most_tokens(lambda tokens: float(tokens <= capacity), Sizes(first, 128), hints, never)
    assert room.is_found
    assert not room.loses_its_end
    assert room.lost is not None
    assert room.held <= capacity < room.lost
    assert room.lost - room.held <= max(128, PRECISION * (room.held + first))


def test_a_right_hint_takes_two_trials_and_one_that_makes_sure() -> None:
    tried: list[int] = []

    def share(tokens: int) -> float:
        tried.append(tokens)
        return float(tokens <= 10_000)

    room = most_tokens(share, Sizes(1000, 128), [10_000], never)
    assert tried == [10_000 - 88, 10_000 + 88, 10_000 + 88]
    assert room == Room(9_912, 10_088, True)


def test_a_prompt_that_lost_its_end_says_how_much_was_too_much() -> None:
    """Room for 9,000 tokens in all: after 8,000 of others, 1,000 of 2,000 are left."""
    tried: list[int] = []

    def share(tokens: int) -> float:
        tried.append(tokens)
        return min(1.0, max(0.0, (9000 - tokens) / 2000))

    room = most_tokens(share, Sizes(2000, 128), [], never)
    assert tried == [2000, 4000, 8000, 7000 - 72, 7000 + 72, 7000 + 72]
    assert room == Room(6928, 7072, True, loses_its_end=True)


def test_a_prompt_that_was_lost_by_chance_does_not_end_the_search() -> None:
    tried: list[int] = []

    def share(tokens: int) -> float:
        tried.append(tokens)
        return float(tokens <= 10_000 and len(tried) != 3)  # the third trial, of 4,000 tokens, is spoilt

    room = most_tokens(share, Sizes(1000, 128), [], never)
    assert tried[:3] == [1000, 2000, 4000]
    assert room.is_found
    assert room.lost is not None
    assert room.held <= 10_000 < room.lost <= room.held + PRECISION * (room.held + 1000)


def test_when_the_time_is_over_the_bounds_are_kept() -> None:
    answers = iter([False, False, True])
    room = most_tokens(lambda tokens: 1.0, Sizes(1000, 128), [], lambda: next(answers))
    assert room == Room(2000, None, False)


@pytest.mark.parametrize(
    ("tokens", "longest", "grain", "lengths"),
    [
        (0, 500, 1, []),
        (500, 500, 1, [500]),
        (501, 500, 1, [251, 250]),
        (1600, 500, 1, [400, 400, 400, 400]),
        (160, 100, 16, [80, 80]),
        (176, 100, 16, [96, 80]),
    ],
)
def test_fillers_are_of_nearly_equal_length(tokens: int, longest: int, grain: int, lengths: list[int]) -> None:
    def ask(label: str, tokens: int, counted: bool = True) -> Seen:
        raise AssertionError("nothing is sent")

    assert Trials(ask, grain).lengths(tokens, longest) == lengths


def test_no_two_trials_have_a_prompt_in_common() -> None:
    labels: list[str] = []

    def ask(label: str, tokens: int, counted: bool = True) -> Seen:
        labels.append(label)
        return Seen(0, None, None)

    trials = Trials(ask, 1)
    for _ in range(2):
        trial = trials.begin()
        trial.first("a", 100)
        trial.fill([100, 100])
        trial.fill([100])
    assert len(set(labels)) == len(labels) == trials.requests == 8
    assert trials.tokens == 800
