"""Prompts of thousands of items of one token: what is made fast for them says the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.cache.base import Item
from harness.cache.block_chain import BlockChain, BlockNumbers, TokenChain
from harness.cache.held import Held
from harness.cache.prefix_tree import PrefixTree
from harness.cache.prompt import common_tokens, equal_items, tokens

Ids = list[int]
_ids = st.lists(st.integers(0, 2), max_size=70)
_items = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=40)


def singles(ids: Ids) -> list[Item]:
    return [(token, 1) for token in ids]


def one_after_the_other(a: list[Item], b: list[Item]) -> int:
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return count


@given(start=_items, a=_items, b=_items)
def test_items_are_equal_as_far_as_one_by_one(start: list[Item], a: list[Item], b: list[Item]) -> None:
    assert equal_items(start * 9 + a, start * 9 + b) == one_after_the_other(start * 9 + a, start * 9 + b)


@given(start=_ids, a=_ids, b=_items)
def test_what_is_held_shares_as_much_token_by_token(start: Ids, a: Ids, b: list[Item]) -> None:
    held, wanted = singles(start * 5 + a), [*singles(start * 5), *b]
    spelled = [(token, place) for token, count in wanted for place in range(count)]
    expected = one_after_the_other([(token, 0) for token, _ in held], spelled)
    assert Held.of(held).common(Held.of(wanted)) == expected
    assert Held.of(wanted).common(Held.of(held)) == expected == common_tokens(held, wanted)


@given(ids=_ids, count=st.integers(0, 80))
def test_the_first_tokens_of_what_is_held(ids: Ids, count: int) -> None:
    assert Held.of(singles(ids)).first(count) == Held.of(singles(ids[:count]))


@given(prompts=st.lists(_ids, max_size=12), page_tokens=st.integers(1, 3))
def test_a_tree_is_the_same_whether_lengths_are_known_or_counted(prompts: list[Ids], page_tokens: int) -> None:
    told, counting = PrefixTree(page_tokens), PrefixTree(page_tokens)
    for ids in prompts:
        run = singles(ids[: len(ids) // page_tokens * page_tokens])
        node, new = told.insert(run, len(run))
        other, counted = counting.insert(run)
        assert (new, node.tokens, node.items) == (counted, other.tokens, other.items)
    assert told.tokens == counting.tokens


@given(prompts=st.lists(_ids, max_size=8), places=st.lists(st.integers(0, 70), max_size=8))
def test_locked_tokens_are_those_of_all_nodes_that_a_lock_covers(prompts: list[Ids], places: list[int]) -> None:
    tree = PrefixTree(page_tokens=1)
    locks: list[Ids] = []
    for ids, place in zip(prompts, places, strict=False):
        tree.insert(singles(ids))
        node, shared = tree.match(singles(ids[:place]))
        tree.lock(node)
        locks.append(ids[:shared])
        covered = {tuple(ids[:end]) for ids in locks for end in range(1, len(ids) + 1)}
        assert tree.locked_tokens == len(covered)
    for ids in locks:
        tree.unlock(tree.match(singles(ids))[0])
    assert tree.locked_tokens == 0


@given(prompts=st.lists(_ids, min_size=2, max_size=2), cut=st.integers(0, 70), block_tokens=st.integers(1, 5))
def test_a_chain_of_token_ids_tells_the_same_blocks_apart(prompts: list[Ids], cut: int, block_tokens: int) -> None:
    numbers, chains = BlockNumbers(block_tokens), []
    for ids in prompts:
        plain, hashed = BlockChain(numbers), TokenChain(block_tokens)
        plain.extend(singles(ids))
        for part in (ids[:cut], ids[cut:]):
            hashed.extend(part)
        assert hashed.tokens == len(ids)
        assert len(hashed.blocks) == len(plain.blocks)
        chains.append((plain.blocks, hashed.blocks))
    (first, first_hashes), (second, second_hashes) = chains
    assert [a == b for a, b in zip(first, second, strict=False)] == [
        a == b for a, b in zip(first_hashes, second_hashes, strict=False)
    ]


def test_chains_of_two_namespaces_have_no_block_in_common() -> None:
    chains = [TokenChain(2, name) for name in ("", "a", "b")]
    for chain in chains:
        chain.extend([1, 2, 3, 4])
    assert len({number for chain in chains for number in chain.blocks}) == 6


def test_a_prompt_has_as_many_tokens_as_items() -> None:
    assert tokens(singles([5, 5, 5])) == 3
