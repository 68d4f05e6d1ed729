from __future__ import annotations

from harness.sim.kv.items import items


def test_an_item_is_one_token_of_one_namespace() -> None:
    assert items([7, 8, 7]) == [(7, 1), (8, 1), (7, 1)]
    assert items([7], "a") == items([7], "a") != items([7], "b")
    assert items([7]) not in (items([7], "a"), items([7], "b"))


def test_equal_tokens_are_one_object() -> None:
    first, second = items([900, 900])
    assert first is second is items([900])[0]


def test_the_same_namespace_has_the_same_items_after_many_others() -> None:
    before = items([7], "first")
    for number in range(1000):
        items([7], f"another {number}")
    assert items([7], "first") == before
