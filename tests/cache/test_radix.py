from __future__ import annotations

import pytest

from harness.cache.base import serve
from harness.cache.radix import RadixTree
from harness.errors import InputError

ANSWER = [(1000, 8)]
ONE = [(1000, 1)]


def test_the_counts_recorded_of_a_real_server() -> None:
    """SGLang 0.5.23, page 1, after another chat: the template's head of 7 is shared by all, the last token is not."""
    tree = RadixTree(10240)
    serve(tree, [(0, 7), (5, 30)], ANSWER)
    prompt = [(0, 7), (1, 2120), (2, 15)]
    assert serve(tree, prompt, ANSWER) == 7
    assert serve(tree, [(0, 7), (1, 2120), (3, 15)], ANSWER) == 2127
    assert serve(tree, prompt, ANSWER) == 2141


def test_what_was_asked_by_a_client_that_hung_up_is_computed_and_stays() -> None:
    """As seen on the real server: 3,170 tokens, given up in the prefill; the next request found 3,169."""
    tree = RadixTree(10240)
    tree.abandon(tree.admit([(1, 3170)]))
    assert serve(tree, [(1, 3170)], ANSWER) == 3169


def test_the_oldest_leaf_goes_as_a_whole() -> None:
    tree = RadixTree(20)
    serve(tree, [(1, 10)], ONE)
    serve(tree, [(2, 8)], ONE)
    serve(tree, [(3, 4)], ONE)
    assert (tree.stored_tokens, tree.evicted_tokens) == (12, 10)
    assert serve(tree, [(2, 8)], ONE) == 7
    assert serve(tree, [(1, 6)], ONE) == 0


def test_nothing_is_evicted_while_there_is_room() -> None:
    tree = RadixTree(20)
    serve(tree, [(1, 10)], ONE)
    serve(tree, [(2, 10)], ONE)
    assert (tree.stored_tokens, tree.evicted_tokens) == (20, 0)


def test_an_answer_goes_before_its_prompt() -> None:
    """8 + 4 of the first request and 6 of the second leave 2; the third needs 5."""
    tree = RadixTree(20)
    serve(tree, [(1, 8)], [(2, 5)])
    serve(tree, [(3, 6)], ONE)
    serve(tree, [(4, 5)], ONE)
    assert tree.evicted_tokens == 4
    assert serve(tree, [(1, 8), (2, 5), (5, 1)], ONE) == 8


def test_the_part_cut_off_a_node_counts_as_used() -> None:
    """The third request splits the first's node; so the second is what the fourth evicts."""
    tree = RadixTree(20)
    serve(tree, [(1, 6), (2, 4)], ONE)
    serve(tree, [(9, 5)], ONE)
    assert serve(tree, [(1, 6), (3, 2)], ONE) == 6
    serve(tree, [(5, 4)], ONE)
    assert serve(tree, [(1, 6), (2, 4)], ONE) == 9
    assert tree.evicted_tokens == 5


def test_only_whole_pages_are_stored_and_found() -> None:
    tree = RadixTree(1000, page_tokens=4)
    assert serve(tree, [(1, 6), (2, 4)], ONE) == 0
    assert tree.stored_tokens == 8
    assert serve(tree, [(1, 6), (2, 4)], ONE) == 8
    assert serve(tree, [(1, 6), (3, 4)], ONE) == 4
    assert serve(tree, [(1, 4)], ONE) == 0


def test_with_pages_a_prefill_needs_a_page_more_than_it_takes() -> None:
    tree = RadixTree(16, page_tokens=4)
    serve(tree, [(1, 10)], ONE)
    serve(tree, [(2, 4)], ONE)
    assert (tree.stored_tokens, tree.evicted_tokens) == (12, 0)
    serve(tree, [(3, 4)], ONE)
    assert tree.evicted_tokens == 8


@pytest.mark.parametrize(("answer", "evicted"), [(2, 0), (3, 4)])
def test_with_pages_each_step_of_an_answer_needs_a_free_page(answer: int, evicted: int) -> None:
    """4 tokens are left after the prefill. The first step takes them; the second begins no page, and needs one."""
    tree = RadixTree(12, page_tokens=4)
    serve(tree, [(1, 4)], ONE)
    serve(tree, [(2, 4)], [(3, answer)])
    assert tree.evicted_tokens == evicted


def test_a_prompt_is_found_when_it_is_computed() -> None:
    tree = RadixTree(100)
    first = tree.admit([(1, 10)])
    assert tree.admit([(1, 10)]).cached_tokens == 0
    tree.prefilled(first)
    assert tree.admit([(1, 10)]).cached_tokens == 9


def test_what_a_request_uses_is_not_evicted() -> None:
    tree = RadixTree(20)
    running = tree.admit([(1, 10)])
    tree.prefilled(running)
    serve(tree, [(2, 8)], ONE)
    serve(tree, [(3, 8)], ONE)
    assert tree.evicted_tokens == 8
    tree.finish(running, ONE)
    assert serve(tree, [(1, 10)], ONE) == 9


def test_what_does_not_fit_is_served_and_the_room_paid_back() -> None:
    tree = RadixTree(20)
    assert serve(tree, [(1, 30)], ONE) == 0
    assert serve(tree, [(2, 5)], ONE) == 0
    assert (tree.stored_tokens, tree.evicted_tokens) == (5, 30)


@pytest.mark.parametrize(("chunk", "cached"), [(None, 0), (4, 8)])
def test_the_ends_of_prefill_chunks_are_borders(chunk: int | None, cached: int) -> None:
    """10 tokens are stored, the second request lacks 2: of 4 + 4 + 2 only the last part goes."""
    tree = RadixTree(14, chunk_tokens=chunk)
    serve(tree, [(1, 10)], ONE)
    serve(tree, [(2, 6)], ONE)
    assert serve(tree, [(1, 10)], ONE) == cached


def test_after_clear_nothing_is_known() -> None:
    tree = RadixTree(20)
    serve(tree, [(1, 30)], ONE)
    tree.clear()
    assert (tree.stored_tokens, tree.evicted_tokens) == (0, 0)
    assert serve(tree, [(1, 20)], ONE) == 0


@pytest.mark.parametrize(
    ("capacity", "page", "chunk", "said"),
    [
        (3, 4, None, "holds nothing"),
        (10, 0, None, "holds nothing"),
        (100, 4, 6, "whole pages"),
        (100, 4, 0, "whole pages"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(capacity: int, page: int, chunk: int | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        RadixTree(capacity, page, chunk)
