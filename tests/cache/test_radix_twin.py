from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Item
from harness.cache.radix import RadixAdmission, RadixTree
from tests.cache.plain_radix import PlainRadixTree, PlainRequest
from tests.cache.steps import Request, Step, drive, plain, steps

OVERLAPPING = ["start", "go on", "go on", "give up", "serve"]


def run_beside(steps: list[Step], model: RadixTree, twin: PlainRadixTree) -> None:
    def equal_room() -> None:
        assert model.stored_tokens == twin.stored_tokens
        assert model.evicted_tokens == twin.evicted_tokens

    def start(prompt: tuple[Item, ...], _: Step) -> tuple[RadixAdmission, PlainRequest]:
        admission, request = model.admit(prompt), twin.admit(plain(prompt))
        assert admission.cached_tokens == request.cached_tokens
        equal_room()
        return admission, request

    def prefilled(request: Request) -> None:
        model.prefilled(request.model)
        twin.prefilled(request.twin)
        equal_room()

    def finish(request: Request, output: tuple[Item, ...]) -> None:
        model.finish(request.model, output)
        twin.finish(request.twin, plain(output))
        equal_room()

    def abandon(request: Request) -> None:
        model.abandon(request.model)
        twin.abandon(request.twin)
        equal_room()

    drive(steps, start=start, prefilled=prefilled, finish=finish, abandon=abandon)


@pytest.mark.parametrize("page", [1, 4])
@given(steps=steps(["serve"], size=50), pages=st.integers(6, 40))
@settings(max_examples=100, deadline=None)
def test_one_request_at_a_time_is_served_as_by_the_rules(steps: list[Step], page: int, pages: int) -> None:
    run_beside(steps, RadixTree(pages * page, page), PlainRadixTree(pages * page, page))


@pytest.mark.parametrize(("page", "chunk"), [(1, None), (1, 7), (3, None), (3, 6)])
@given(steps=steps(OVERLAPPING, size=50), pages=st.integers(6, 60))
@settings(max_examples=50, deadline=None)
def test_requests_that_overlap_are_served_as_by_the_rules(
    steps: list[Step], page: int, chunk: int | None, pages: int
) -> None:
    run_beside(steps, RadixTree(pages * page, page, chunk), PlainRadixTree(pages * page, page, chunk))


@pytest.mark.parametrize("page", [1, 4])
@given(steps=steps(OVERLAPPING))
@settings(max_examples=40, deadline=None)
def test_a_tree_without_end_evicts_nothing(steps: list[Step], page: int) -> None:
    run_beside(steps, RadixTree(None, page), PlainRadixTree(None, page))
