"""Times and ids are known by how they look, and nothing else is taken for one."""

from __future__ import annotations

import pytest

from harness.lint.values import masked, values

TIMES = [
    "2026-03-04T10:15:30Z",
    "2026-03-04T10:15:30.123456+01:00",
    "2026-03-04 10:15",
    "2026/03/04",
    "04.03.2026",
    "3/4/2026 9:58 AM",
    "Wed, 04 Mar 2026 10:15:30 +0100",
    "Wed Mar  4 10:15:30 2026",
    "Wednesday, March 4, 2026",
    "March 4th, 2026 at 10:15 pm",
    "4 March 2026, 10:15",
    "March 2026",
    "10:15:07 CET",
    "1772619330",
    "1772619330123",
    "1772619330.25",
    "20260304T101530Z",
    "20260304-101530",
    "5 minutes ago",
    "Thursday",
]
IDS = [
    "6f1c2b9e-0d53-4a7e-9b1a-2f6d0c8e4b71",
    "4bf92f3577b34da6a3ce929d0e0e4736",
    "01JNF3V8ZK4Q6W2T9RXA5B7CDE",
    "req_9fk2Qa",
    "VbQkTzRwYpLm",
    "FmDPJQlse7NPPx5Tyk7KM+==",
    "-KFE5ZKTHyLVItxWO7gzN",
    "4711",
    "v2.1.0-rc1",
]
WORDS = [
    r"caf\u00e9\nand \"tea\"",
    "You answer letters.",
    "MyClass and HttpRequestHandler",
    "may, march on, sun and moon",
    "Second: see above",
]


@pytest.mark.parametrize("time", TIMES)
def test_a_time_is_one_value(time: str) -> None:
    text = f"It is {time} now"
    assert [(text[one.start : one.end], one.category) for one in values(text)] == [(time, "time")]


@pytest.mark.parametrize("identity", IDS)
def test_an_id_is_one_value(identity: str) -> None:
    text = f"(id {identity}) of it"
    assert [(text[one.start : one.end], one.category) for one in values(text)] == [(identity, "id")]


@pytest.mark.parametrize("words", WORDS)
def test_words_are_neither(words: str) -> None:
    assert values(words) == ()


def test_texts_are_the_same_but_for_their_values() -> None:
    assert masked("Order 17 of 2026-03-04, id a1b2") == masked("Order 4 of 2026-11-30 10:00, id ff09")
    assert masked("Order 17 of Ann") != masked("Order 17 of Ben")
