"""The comparison by which simulated answers are held against recorded ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.exchange import Allowed, Response, compare, differences, unexplained

REAL = {"a": 1, "b": [{"c": None}, {"c": 2.0}], "d": "x"}


@pytest.mark.parametrize(
    ("simulated", "found"),
    [
        (REAL, []),
        ({**REAL, "a": 2}, [("body.a", "value")]),
        ({**REAL, "a": 1.0}, [("body.a", "type")]),
        ({**REAL, "a": True}, [("body.a", "type")]),
        ({**REAL, "e": 1}, [("body.e", "extra")]),
        ({"b": REAL["b"], "d": "x"}, [("body.a", "missing")]),
        ({"d": "x", "a": 1, "b": REAL["b"]}, [("body", "order")]),
        ({**REAL, "b": [{"c": None}]}, [("body.b[]", "length")]),
        ({**REAL, "b": [{"c": None}, {"c": 3.0}]}, [("body.b[].c", "value")]),
        ({**REAL, "b": [{"c": 0}, {"c": 2.0}]}, [("body.b[].c", "type")]),
    ],
)
def test_each_kind_of_difference_is_found(simulated: Any, found: list[tuple[str, str]]) -> None:
    assert [(one.where, one.what) for one in differences(REAL, simulated, "body")] == found


def test_an_allowance_covers_one_field_and_one_kind_of_difference() -> None:
    found = [*differences(REAL, {**REAL, "a": 2, "d": 5}, "body")]
    assert len(found) == 2
    assert unexplained(found, [Allowed(r"body\.(a|d)", "why")]) == ["body.d: type: recorded 'x', simulated 5"]
    assert unexplained(found, [Allowed(r"body\.(a|d)", "why", what=("value", "type"))]) == []


def test_streams_are_compared_event_by_event() -> None:
    head = {"content-type": "text/event-stream"}
    real = Response(200, head, b': keepalive 1/2\n\ndata: {"a": 1}\n\ndata: [DONE]\n\n')
    assert real.events == [{"comment": "keepalive 1/2"}, {"a": 1}, "[DONE]"]
    other = Response(200, head, b': keepalive 2/2\n\ndata: {"a": 1}\n\n')
    assert [(one.where, one.what) for one in compare(real, other)] == [
        ("body[]", "length"),
        ("body[].comment", "value"),
    ]
