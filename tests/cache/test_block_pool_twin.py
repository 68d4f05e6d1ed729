from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cache.base import Item
from harness.cache.block_pool import BlockAdmission, BlockPool
from tests.cache.plain_block_pool import PlainBlockPool, PlainRequest
from tests.cache.steps import Request, Step, drive, plain, steps


def run_beside(steps: list[Step], model: BlockPool, twin: PlainBlockPool, check_room: bool) -> None:
    def equal_room() -> None:
        if check_room:
            assert model.occupied_blocks == twin.occupied_blocks

    def start(prompt: tuple[Item, ...], _: Step) -> tuple[BlockAdmission, PlainRequest]:
        admission, request = model.admit(prompt), twin.admit(plain(prompt))
        assert admission.cached_tokens == request.cached_tokens
        equal_room()
        return admission, request

    def prefilled(request: Request) -> None:
        model.prefilled(request.model)
        twin.prefilled(request.twin)

    def finish(request: Request, output: tuple[Item, ...]) -> None:
        model.finish(request.model, output)
        twin.finish(request.twin, plain(output))
        equal_room()

    def abandon(request: Request) -> None:
        model.abandon(request.model)
        twin.abandon(request.twin)
        equal_room()

    drive(steps, start=start, prefilled=prefilled, finish=finish, abandon=abandon)


@given(steps=steps(["serve"], size=50), blocks=st.integers(2, 24), block_tokens=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_one_request_at_a_time_is_served_as_by_the_rules(steps: list[Step], blocks: int, block_tokens: int) -> None:
    run_beside(steps, BlockPool(blocks, block_tokens), PlainBlockPool(blocks, block_tokens), check_room=True)


@pytest.mark.parametrize("step_tokens", [None, 7])
@given(
    steps=steps(["start", "go on", "go on", "give up", "serve"], size=50),
    blocks=st.integers(2, 24),
    block_tokens=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_requests_that_overlap_are_served_as_by_the_rules(
    steps: list[Step], blocks: int, block_tokens: int, step_tokens: int | None
) -> None:
    model = BlockPool(blocks, block_tokens, step_tokens)
    run_beside(steps, model, PlainBlockPool(blocks, block_tokens, step_tokens), check_room=True)


@given(steps=steps(["start", "go on", "go on", "give up", "serve"]), block_tokens=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_a_pool_without_end_is_one_that_is_large_enough(steps: list[Step], block_tokens: int) -> None:
    run_beside(steps, BlockPool(None, block_tokens), PlainBlockPool(1000, block_tokens), check_room=False)
