"""The model of llama.cpp's server against its twin on plain token lists: the same hits, request by request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Item
from harness.cache.slots import SlotAdmission, Slots
from tests.cache.plain_slots import PlainRequest, PlainSlots, lcp
from tests.cache.steps import Request, Step, drive, plain, steps

PER_TOKEN, PER_STATE = 10, 7
SETTINGS = {
    "1 slot": {"slots": 1},
    "3 slots": {"slots": 3},
    "a tier without limit": {"slots": 1, "host_bytes": None},
    "a small tier": {"slots": 2, "host_bytes": 1500},
    "one slot and a tier": {"slots": 1, "host_bytes": 2500},
    "a large tier": {"slots": 1, "host_bytes": 100_000},
    "unified without a tier": {"slots": 3, "unified": True},
    "unified with a tier": {"slots": 3, "unified": True, "host_bytes": 2000},
    "another similarity": {"slots": 3, "host_bytes": 2000, "similarity": 0.5},
}


def check(chosen: dict[str, Any], traffic: list[Step]) -> None:
    slot_tokens, count = 256, chosen["slots"]
    all_tokens = slot_tokens if chosen.get("unified") else slot_tokens * count
    model = Slots(**chosen, context_tokens=all_tokens, bytes_per_token=PER_TOKEN, bytes_per_state=PER_STATE)
    twin = PlainSlots(
        **chosen,
        slot_tokens=slot_tokens,
        host_tokens=all_tokens,
        bytes_per_token=PER_TOKEN,
        bytes_per_state=PER_STATE,
    )

    requests: list[tuple[SlotAdmission, PlainRequest]] = []
    ended: list[PlainRequest] = []

    def compare() -> None:
        for mine, other in requests:
            assert (mine.slot, mine.cached_tokens, mine.refused) == (other.slot, other.cached, other.refused)
        for mine, other in requests[-3:]:
            assert model.computed(mine.prompt) == most_computed(other.prompt)

    def most_computed(prompt: tuple[int, ...]) -> int:
        """In one slot: all that it has of the prompt, or what the request found that has no first token there yet."""
        found = {
            other.slot: other.cached
            for _, other in requests
            if not (other in ended or other.refused or other.has_first_token)
        }
        return max(min(lcp(twin.content(slot), prompt), found.get(slot, len(prompt))) for slot in range(count))

    def start(prompt: tuple[Item, ...], step: Step) -> tuple[Any, Any]:
        pinned = step.option // 4 % count if step.option % 4 == 0 else None
        caches = step.option != 30
        requests.append(
            (model.admit(prompt, slot=pinned, cache_prompt=caches), twin.start(plain(prompt), pinned, caches))
        )
        compare()
        return requests[-1]

    def prefilled(request: Request) -> None:
        model.prefilled(request.model)
        request.twin.has_first_token = True

    def finish(request: Request, output: tuple[Item, ...]) -> None:
        ended.append(request.twin)
        model.finish(request.model, output)
        twin.end(request.twin, plain(output))
        compare()

    def abandon(request: Request) -> None:
        ended.append(request.twin)
        model.abandon(request.model)
        twin.give_up(request.twin)
        compare()

    drive(traffic, start=start, prefilled=prefilled, finish=finish, abandon=abandon)


@pytest.mark.parametrize("chosen", SETTINGS.values(), ids=SETTINGS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_one_request_after_the_other(chosen: dict[str, Any], data: st.DataObject) -> None:
    check(chosen, data.draw(steps(["serve"])))


@pytest.mark.parametrize("chosen", SETTINGS.values(), ids=SETTINGS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_requests_that_overlap_and_are_given_up(chosen: dict[str, Any], data: st.DataObject) -> None:
    check(chosen, data.draw(steps(["serve", "start", "go on", "go on", "give up"])))
