from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client import sse
from harness.client.sse import Events, split_events


def test_each_event_ends_behind_its_blank_line() -> None:
    assert split_events(b"data: one\n\ndata: two\n\n") == Events([b"one", b"two"], [11, 22])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_all_three_line_ends_are_understood(newline: bytes) -> None:
    body = b"data: one||data: two||".replace(b"|", newline)
    assert split_events(body) == Events([b"one", b"two"], [len(body) // 2, len(body)])


def test_comments_and_other_fields_are_no_events() -> None:
    body = b": keepalive 1/2\n\nevent: delta\nid: 7\nretry: 10\ndata: one\n\n:\n\nevent: ping\n\ndata:two\n\n"
    assert split_events(body).data == [b"one", b"two"]


def test_an_error_line_is_an_event() -> None:
    body = b'data: one\n\nerror: {"message": "out of memory"}\n\nerror: none\n\n'
    assert split_events(body).data == [b"one", b'{"error": {"message": "out of memory"}}']


def test_several_data_lines_are_one_event_and_one_leading_space_is_dropped() -> None:
    assert split_events(b"data: a\ndata:  b\ndata:c\n\n").data == [b"a\n b\nc"]


def test_an_event_without_its_blank_line_is_left_out() -> None:
    assert split_events(b"data: one\n\ndata: two\n") == Events([b"one"], [11])
    assert split_events(b"data: one\n") == Events([], [])
    assert split_events(b"") == Events([], [])


def test_extra_blank_lines_and_empty_data_are_nothing() -> None:
    assert split_events(b"\n\ndata: one\n\n\n\ndata:\n\ndata: two\n\n").data == [b"one", b"two"]


def test_the_read_of_an_event_is_the_one_that_brought_the_end_of_its_blank_line() -> None:
    events = split_events(b"data: one\n\ndata: two\n\n")
    assert events.reads([10, 11, 22]) == [1, 2]
    assert events.reads([22]) == [0, 0]
    assert events.reads([0, 12, 12, 21, 22]) == [1, 4]


@given(st.text(alphabet="datx: \n\r", max_size=60).map(lambda text: text.replace("x", "data: x")))
def test_the_short_way_through_a_usual_body_gives_what_the_long_way_gives(text: str) -> None:
    body = text.encode()
    short = sse._split_plain(body)
    assert short is None or short == sse._split_lines(body)


def test_the_usual_body_does_go_the_short_way() -> None:
    assert sse._split_plain(b'data: {"a":1}\n\ndata: [DONE]\n\n') == Events([b'{"a":1}', b"[DONE]"], [15, 29])
