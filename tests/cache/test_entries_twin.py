"""The model of mlx-lm's server against its twin on plain token lists: the same hits, request by request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Item
from harness.cache.entries import Entries
from tests.cache.plain_entries import PlainEntries
from tests.cache.steps import Request, Step, drive, plain, steps

SETTINGS = {
    "none": {"size": 0},
    "one": {"size": 1},
    "four": {"size": 4},
    "ten and a limit in bytes": {"size": 10, "limit_bytes": 2000, "bytes_per_token": 10},
}


def check(chosen: dict[str, Any], traffic: list[Step]) -> None:
    model, twin = Entries(**chosen), PlainEntries(**chosen)

    def start(prompt: tuple[Item, ...], step: Step) -> tuple[Any, Any]:
        system = prompt[0][1] if step.option % 2 and len(prompt) > 1 else 0
        mine, other = model.admit(prompt, system_tokens=system), twin.start(plain(prompt), system)
        assert mine.cached_tokens == other.cached
        return mine, other

    def prefilled(request: Request) -> None:
        model.prefilled(request.model)
        twin.first_token(request.twin)

    def finish(request: Request, output: tuple[Item, ...]) -> None:
        model.finish(request.model, output)
        twin.end(request.twin, plain(output))

    def abandon(request: Request) -> None:
        model.abandon(request.model)
        twin.give_up(request.twin)

    drive(traffic, start=start, prefilled=prefilled, finish=finish, abandon=abandon)


@pytest.mark.parametrize("chosen", SETTINGS.values(), ids=SETTINGS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_one_request_after_the_other(chosen: dict[str, Any], data: st.DataObject) -> None:
    check(chosen, data.draw(steps(["serve"])))


@pytest.mark.parametrize("chosen", SETTINGS.values(), ids=SETTINGS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_requests_that_overlap_and_are_given_up(chosen: dict[str, Any], data: st.DataObject) -> None:
    check(chosen, data.draw(steps(["serve", "start", "go on", "go on", "give up"])))
