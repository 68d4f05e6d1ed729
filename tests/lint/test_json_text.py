"""JSON keys are put in order as text: nothing of what they hold is read and written anew."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from harness.lint.json_text import keys_of, lexemes, spans, string_at, with_sorted_keys

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_members_move_and_white_space_stays() -> None:
    assert with_sorted_keys('{ "b": 1.50,\n  "a": [ {"d":1e2, "c": "\\u00e9"} ] }\n') == (
        '{ "a": [ {"c": "\\u00e9", "d":1e2} ],\n  "b": 1.50 }\n'
    )


def test_a_key_that_occurs_twice_stays_where_it_is() -> None:
    assert with_sorted_keys('{"b":1,"a":{"y":1,"y":2}}') == '{"b":1,"a":{"y":1,"y":2}}'


@given(VALUES, st.sampled_from([None, 1, 3]), st.booleans())
def test_sorted_json_is_the_same_json(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    done = with_sorted_keys(text)
    assert json.loads(done) == value
    assert sorted(lexemes(done)) == sorted(lexemes(text))
    assert with_sorted_keys(done) == done
    assert keys_of(done) == keys_of(with_sorted_keys(json.dumps(value, ensure_ascii=ascii_only)))


def test_values_within_a_text() -> None:
    text = 'See [1] and {"a": "}"}; not {this}, but [{"b": []}].'
    assert [text[start:end] for start, end in spans(text)] == ['{"a": "}"}', '[{"b": []}]']
    inside = string_at(text, spans(text)[0], text.index("}"))
    assert inside is not None
    assert text[inside.start : inside.end] == "}"
    assert string_at(text, spans(text)[1], text.index("[]")) is None
