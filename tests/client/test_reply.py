"""Replies from made responses; reads come 10, 20, 30 ... ms after the send."""

from __future__ import annotations

import pytest

from harness.client.exchange import Exchange
from harness.client.reply import read_reply
from harness.engines.reading import read_event
from tests.client.wire import (
    DONE,
    FINISH,
    LAST_CHUNK,
    MS,
    ROLE,
    STREAM_HEAD,
    T_SEND,
    arrive,
    chunk,
    event,
    reply_to,
    word,
)

CLOSE_HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
USAGE = event('{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":3,"prompt_tokens_details":null}}')


def unchunked(*events: str) -> bytes:
    return "".join(f"data: {data}\n\n" for data in events).encode()


def test_times_counts_and_text_of_a_whole_stream() -> None:
    reply = reply_to([STREAM_HEAD, ROLE, word("a"), word("b"), word("c"), FINISH, USAGE, DONE + LAST_CHUNK])
    assert (reply.status, reply.error, reply.http_status, reply.finish_reason) == ("ok", None, 200, "stop")
    assert reply.text == "abc"
    assert reply.t_send == T_SEND
    assert reply.t_first == T_SEND + 30 * MS
    assert reply.t_last == T_SEND + 50 * MS
    assert reply.t_end == T_SEND + 80 * MS
    assert reply.ttft_ms == 30.0
    assert reply.itl_ms == (10.0, 10.0)
    assert reply.tpot_ms == 10.0
    assert reply.e2e_ms == 80.0
    assert (reply.prompt_tokens, reply.output_tokens, reply.cached_tokens) == (100, 3, None)
    assert (reply.prompt_tokens_source, reply.output_tokens_source, reply.cached_tokens_source) == (
        "usage",
        "usage",
        None,
    )
    assert (reply.chunks, reply.coalesced, reply.first_tokens) == (3, 0, 1)
    assert (reply.stamp_error_ms, reply.last_stamp_error_ms) == (0.0, 0.0)


@pytest.mark.parametrize(
    "no_output",
    [
        b"",
        ROLE,
        event('{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":9}}'),
        event('{"choices":[{"index":0,"delta":{"content":""},"token_ids":[]}]}'),
        event('{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}'),
        chunk(b": keepalive 1/2\n\n"),
    ],
)
def test_heads_roles_empty_chunks_and_comments_are_not_the_first_output(no_output: bytes) -> None:
    reply = reply_to([STREAM_HEAD + no_output, word("a"), DONE + LAST_CHUNK])
    assert reply.ttft_ms == 20.0
    assert reply.chunks == 1


@pytest.mark.parametrize(
    "delta",
    [
        '"delta":{"reasoning":"hm"}',
        '"delta":{"reasoning_content":"hm","content":null}',
        '"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]}',
        '"delta":{"content":""},"token_ids":[7]',
        '"text":"t"',
    ],
)
def test_reasoning_tool_calls_and_token_ids_are_output(delta: str) -> None:
    reply = reply_to([STREAM_HEAD + ROLE, event(f'{{"choices":[{{"index":0,{delta}}}]}}'), word("a"), DONE])
    assert reply.ttft_ms == 20.0
    assert reply.chunks == 2


def test_reasoning_is_not_part_of_the_text() -> None:
    thinking = event('{"choices":[{"delta":{"reasoning_content":"let me see"}}]}')
    assert reply_to([STREAM_HEAD, thinking, word("42"), DONE, LAST_CHUNK]).text == "42"


def test_several_events_in_one_read_have_no_gap_and_bound_the_error_of_their_stamp() -> None:
    reply = reply_to([STREAM_HEAD + ROLE, word("a") + word("b"), word("c") + word("d") + DONE + LAST_CHUNK])
    assert reply.itl_ms == (0.0, 10.0, 0.0)
    assert reply.coalesced == 2
    # "a" may have come right after the read before; so may "d", since [DONE] came behind it in the same read.
    assert reply.stamp_error_ms == 10.0
    assert reply.last_stamp_error_ms == 10.0


def test_a_first_output_in_the_very_first_read_may_be_as_old_as_the_request() -> None:
    reply = reply_to([STREAM_HEAD + word("a") + word("b"), DONE + LAST_CHUNK])
    assert (reply.ttft_ms, reply.stamp_error_ms) == (10.0, 10.0)


def test_an_output_that_ends_its_read_has_an_exact_stamp_whatever_came_before_it() -> None:
    reply = reply_to([STREAM_HEAD + ROLE + word("a"), DONE + LAST_CHUNK])
    assert (reply.ttft_ms, reply.stamp_error_ms) == (10.0, 0.0)


def test_the_user_clock_gives_no_bound_of_its_error() -> None:
    exchange = arrive([STREAM_HEAD, word("a") + word("b"), DONE, LAST_CHUNK])
    exchange.clock = "user"
    reply = read_reply(exchange, read_event)
    assert (reply.clock, reply.stamp_error_ms, reply.ttft_ms) == ("user", None, 20.0)


def test_a_step_of_the_clock_takes_all_durations_but_nothing_else() -> None:
    exchange = arrive([STREAM_HEAD, word("a"), word("b"), USAGE, DONE, LAST_CHUNK])
    exchange.clock_stepped, exchange.connect_ms = True, 1.5
    reply = read_reply(exchange, read_event)
    assert (reply.status, reply.clock_stepped, reply.output_tokens, reply.connect_ms) == ("ok", True, 3, 1.5)
    assert reply.t_first == T_SEND + 20 * MS
    assert (reply.ttft_ms, reply.tpot_ms, reply.itl_ms, reply.e2e_ms, reply.stamp_error_ms) == (None,) * 5


def test_token_ids_count_the_tokens_of_each_chunk() -> None:
    def ids(*numbers: int) -> bytes:
        return event(f'{{"choices":[{{"delta":{{"content":"x"}},"token_ids":{list(numbers)}}}]}}')

    reply = reply_to([STREAM_HEAD, ids(1, 2, 3), ids(4), ids(5, 6), DONE, LAST_CHUNK])
    assert (reply.output_tokens, reply.output_tokens_source, reply.first_tokens) == (6, "token_ids", 3)
    assert reply.tpot_ms == 20.0 / 3


def test_without_any_count_each_chunk_is_taken_for_a_token_and_the_prompt_stays_unknown() -> None:
    reply = reply_to([STREAM_HEAD, word("a"), word("b"), FINISH, DONE, LAST_CHUNK])
    assert (reply.output_tokens, reply.output_tokens_source) == (2, "events")
    assert (reply.prompt_tokens, reply.prompt_tokens_source, reply.cached_tokens) == (None, None, None)


def test_running_usage_is_replaced_by_the_last_and_cached_tokens_survive() -> None:
    def used(tokens: int, details: str) -> bytes:
        return event(
            '{"choices":[{"delta":{"content":"x"}}],"usage":'
            f'{{"prompt_tokens":9,"completion_tokens":{tokens},"prompt_tokens_details":{details}}}}}'
        )

    reply = reply_to([STREAM_HEAD, used(1, '{"cached_tokens":0}'), used(2, "null"), DONE, LAST_CHUNK])
    assert (reply.output_tokens, reply.cached_tokens, reply.cached_tokens_source) == (2, 0, "usage")


@pytest.mark.parametrize("output_tokens", [1, 3])
def test_one_chunk_has_no_time_per_token(output_tokens: int) -> None:
    usage = event(f'{{"choices":[],"usage":{{"completion_tokens":{output_tokens}}}}}')
    reply = reply_to([STREAM_HEAD, word("a"), usage, DONE + LAST_CHUNK])
    assert (reply.tpot_ms, reply.itl_ms) == (None, ())


def test_a_plain_body_is_one_output_at_the_arrival_of_its_last_byte() -> None:
    body = b'{"choices":[{"message":{"content":"abc"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}'
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    reply = reply_to([head, body[:30], body[30:]])
    assert (reply.status, reply.text, reply.chunks, reply.output_tokens) == ("ok", "abc", 1, 3)
    assert (reply.t_first, reply.t_last, reply.t_end) == (T_SEND + 30 * MS,) * 3
    assert (reply.tpot_ms, reply.first_tokens) == (None, 3)


def test_a_plain_body_up_to_the_close_is_whole_if_it_is_json() -> None:
    whole = reply_to([b"HTTP/1.0 200 OK\r\n\r\n", b'{"choices":[{"message":{"content":"abc"}}]}'])
    assert (whole.status, whole.t_end) == ("ok", T_SEND + 21 * MS)
    cut = reply_to([b"HTTP/1.0 200 OK\r\n\r\n", b'{"choices":[{"message":{"cont'])
    assert (cut.status, cut.error) == ("truncated", "the body ended amid its JSON object")


def test_a_plain_body_that_is_no_json_is_an_error_of_the_server() -> None:
    reply = reply_to([b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1,'])
    assert (reply.status, reply.error) == ("stream_error", 'not a JSON object: {"a":1,')


def test_a_plain_body_that_ends_early_is_truncated() -> None:
    reply = reply_to([b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"choices":[{'])
    assert (reply.status, reply.t_first, reply.t_end) == ("truncated", None, T_SEND + 11 * MS)


@pytest.mark.parametrize(
    ("reads", "status"),
    [
        ([STREAM_HEAD, word("a"), DONE, LAST_CHUNK], "ok"),
        ([STREAM_HEAD, word("a"), DONE], "ok"),
        ([STREAM_HEAD, word("a"), FINISH, LAST_CHUNK], "ok"),
        ([STREAM_HEAD, word("a"), FINISH], "truncated"),
        ([STREAM_HEAD, word("a"), LAST_CHUNK], "truncated"),
        ([STREAM_HEAD, word("a")], "truncated"),
        ([STREAM_HEAD], "truncated"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Enc"], "truncated"),
        ([CLOSE_HEAD, unchunked('{"choices":[{"text":"a","finish_reason":"stop"}]}')], "truncated"),
        ([CLOSE_HEAD, unchunked('{"choices":[{"text":"a","finish_reason":"stop"}]}', "[DONE]")], "ok"),
        ([CLOSE_HEAD, unchunked('{"choices":[{"text":"a"}]}') + b"data: [DONE]\n"], "truncated"),
    ],
)
def test_a_stream_is_whole_with_done_or_with_a_finish_reason_and_complete_framing(
    reads: list[bytes], status: str
) -> None:
    reply = reply_to(reads)
    assert reply.status == status
    assert (reply.error is None) == (status == "ok")


def test_what_came_before_a_stream_broke_off_stays() -> None:
    reply = reply_to([STREAM_HEAD, word("a"), word("b")])
    assert (reply.status, reply.text, reply.ttft_ms, reply.tpot_ms) == ("truncated", "ab", 20.0, 10.0)
    assert (reply.t_end, reply.output_tokens, reply.output_tokens_source) == (T_SEND + 31 * MS, 2, "events")


@pytest.mark.parametrize(
    "error",
    [
        '{"error":{"message":"out of memory","type":"server_error","code":500}}',
        '{"error":{"object":"error","message":"out of memory","code":500}}',
        '{"object":"error","message":"out of memory","code":500}',
        '{"error":"out of memory"}',
    ],
)
@pytest.mark.parametrize("tail", [[DONE, LAST_CHUNK], [LAST_CHUNK], []])
def test_an_error_in_the_stream_is_told_in_the_engines_words(error: str, tail: list[bytes]) -> None:
    reply = reply_to([STREAM_HEAD, word("a"), event(error), *tail])
    assert (reply.status, reply.error, reply.http_status, reply.ttft_ms) == ("stream_error", "out of memory", 200, 20.0)


@pytest.mark.parametrize("bad", ['{"choices":[', '[{"choices":[]}]', "17", '{"a":1},{"b":2}'])
def test_an_event_that_is_no_json_object_is_a_stream_error(bad: str) -> None:
    reply = reply_to([STREAM_HEAD, word("a"), event(bad), word("b"), DONE, LAST_CHUNK])
    assert (reply.status, reply.text) == ("stream_error", "a")
    assert reply.error is not None
    assert bad in reply.error


def test_two_broken_events_that_would_join_to_good_json_are_still_broken() -> None:
    reply = reply_to([STREAM_HEAD, event('{"a":1'), event('"b":2}'), DONE, LAST_CHUNK])
    assert reply.status == "stream_error"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"error":{"message":"too long","code":400}}', "too long"),
        (b'{"object":"error","message":"too long","code":400}', "too long"),
        (b'{"error":"too long"}', "too long"),
        (b'{"detail":"Not Found"}', '{"detail":"Not Found"}'),
        (b"<h1>too long</h1>\n", "<h1>too long</h1>"),
        (b"", "HTTP 400 Bad Request"),
        (b'{"error":"' + b"x" * 900 + b'"}', "x" * 499 + "…"),
    ],
)
def test_an_http_error_is_told_in_the_servers_words(body: bytes, error: str) -> None:
    reply = reply_to([b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(body) + body])
    assert (reply.status, reply.http_status, reply.error) == ("http_error", 400, error)
    assert (reply.t_first, reply.ttft_ms, reply.e2e_ms, reply.text) == (None, None, 10.0, "")


def test_a_redirect_is_an_http_error() -> None:
    assert (
        reply_to([b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"]).status
        == "http_error"
    )


@pytest.mark.parametrize(
    ("ended", "status"),
    [("broken", "stream_error"), ("timeout", "timeout"), ("cancelled", "cancelled"), ("malformed", "stream_error")],
)
def test_other_ends_keep_what_came_and_have_no_end_of_stream(ended: str, status: str) -> None:
    exchange = arrive([STREAM_HEAD, word("a"), word("b")], closed=False)
    exchange.ended, exchange.error = ended, "why"  # type: ignore[assignment]
    reply = read_reply(exchange, read_event)
    assert (reply.status, reply.error, reply.text, reply.ttft_ms) == (status, "why", "ab", 20.0)
    assert (reply.t_end, reply.e2e_ms) == (None, None)


def test_a_stream_that_was_over_before_it_broke_is_whole() -> None:
    exchange = arrive([STREAM_HEAD, word("a"), DONE], closed=False)
    exchange.ended = "broken"
    reply = read_reply(exchange, read_event)
    assert (reply.status, reply.t_end) == ("ok", T_SEND + 30 * MS)


def test_nothing_is_known_of_a_request_that_could_not_be_sent() -> None:
    reply = read_reply(Exchange(ended="unconnected", error="cannot connect"), read_event)
    assert (reply.status, reply.error, reply.http_status) == ("connect_error", "cannot connect", None)
    assert (reply.t_send, reply.t_first, reply.t_end, reply.ttft_ms, reply.chunks, reply.bytes) == (
        None,
        None,
        None,
        None,
        0,
        0,
    )


def test_bytes_are_those_of_the_body_without_its_framing() -> None:
    assert reply_to([STREAM_HEAD, DONE, LAST_CHUNK]).bytes == len(b"data: [DONE]\n\n")
