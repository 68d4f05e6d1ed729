from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.client.framing import Response

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def is_over(response: Response, data: bytes) -> bool:
    """Whether the response is over with `data`, looked at as the client does: only if `feed` says that it may be."""
    return response.feed(data) and response.decode()


def response_of(*reads: bytes) -> Response:
    response = Response()
    for data in reads:
        is_over(response, data)
    return response


def every_cut(data: bytes) -> list[tuple[bytes, bytes]]:
    return [(data[:cut], data[cut:]) for cut in range(1, len(data))]


def test_the_head_gives_status_reason_and_headers_by_lower_case_name() -> None:
    response = response_of(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nX-A: 1\r\nx-a:2\r\n\r\n")
    assert (response.status, response.reason) == (503, "Service Unavailable")
    assert response.headers == {"retry-after": "5", "x-a": "1, 2"}


@pytest.mark.parametrize("head", [b"HTTP/1.1 200\r\n\r\n", b"HTTP/1.1 200 \r\n\r\n", b"HTTP/1.1 200 OK\nServer: x\n\n"])
def test_a_head_without_reason_or_with_bare_line_feeds_is_understood(head: bytes) -> None:
    response = response_of(head)
    assert response.status == 200
    assert response.malformed is None


def test_a_chunked_body_is_put_together_without_extensions_and_trailers() -> None:
    wire = CHUNKED + b'4;name="v"\r\nWiki\r\n 5 \r\npedia\r\n0;x\r\nExpires: never\r\nA: b\r\n\r\n'
    for reads in [(wire,), *every_cut(wire)]:
        response = response_of(*reads)
        assert response.complete
        assert response.body()[0] == b"Wikipedia"


def test_a_chunk_that_ends_like_a_message_does_not_end_it() -> None:
    wire = CHUNKED + b"6\r\na0\r\n\r\n\r\n" + b"2\r\n\r\n\r\n" + b"1\r\nb\r\n"
    for reads in [(wire,), *every_cut(wire)]:
        response = response_of(*reads)
        assert not response.complete
        assert is_over(response, b"0\r\n\r\n")
        assert response.body()[0] == b"a0\r\n\r\n\r\nb"


def test_the_body_ends_of_the_reads_say_which_read_brought_which_byte() -> None:
    response = response_of(CHUNKED + b"3\r\nab", b"c\r\n", b"4", b"\r\ndefg\r\n0\r\n", b"\r\n")
    assert response.body() == (b"abcdefg", [2, 3, 3, 7, 7])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_no_chunk_of_events_looks_like_the_end_of_the_message(newline: bytes) -> None:
    response = response_of(CHUNKED)
    event = b"data: {}" + 2 * newline
    assert not response.feed(b"%x\r\n%b\r\n" % (len(event), event))
    assert response.feed(b"0\r\n\r\n")


def test_content_length_ends_the_body_at_its_last_byte() -> None:
    wire = OK + b"Content-Length: 5\r\n\r\nhello"
    for first, second in every_cut(wire):
        response = Response()
        assert not is_over(response, first)
        assert is_over(response, second)
        assert response.body()[0] == b"hello"
        assert response.keeps_alive


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_response_that_can_have_no_body_ends_with_its_head(status: bytes) -> None:
    response = Response()
    assert is_over(response, b"HTTP/1.1 " + status + b"\r\nContent-Length: 7\r\n\r\n")
    assert response.body() == (b"", [0])
    assert response.keeps_alive


def test_a_body_without_length_ends_with_the_connection() -> None:
    response = Response()
    assert not is_over(response, b"HTTP/1.0 200 OK\r\n\r\nda")
    assert not is_over(response, b"ta\r\n\r\n")
    assert not response.complete
    response.close()
    assert response.complete
    assert response.body() == (b"data\r\n\r\n", [2, 8])
    assert not response.keeps_alive


def test_an_interim_response_is_passed_over() -> None:
    wire = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        + OK
        + b"Content-Length: 2\r\n\r\nhi"
    )
    for reads in [(wire,), *every_cut(wire)]:
        response = response_of(*reads)
        assert (response.status, response.body()[0]) == (200, b"hi")
        assert response.headers == {"content-length": "2"}


@pytest.mark.parametrize(
    ("version", "connection", "keeps_alive"),
    [
        ("1.1", "", True),
        ("1.1", "Connection: close\r\n", False),
        ("1.1", "Connection: x, Close\r\n", False),
        ("1.0", "", False),
        ("1.0", "Connection: Keep-Alive\r\n", True),
    ],
)
def test_the_server_decides_whether_the_connection_stays(version: str, connection: str, keeps_alive: bool) -> None:
    response = response_of(f"HTTP/{version} 200 OK\r\n{connection}Content-Length: 2\r\n\r\nok".encode())
    assert response.complete
    assert response.keeps_alive is keeps_alive


@pytest.mark.parametrize("wire", [OK + b"Content-Length: 2\r\n\r\nokX", CHUNKED + b"2\r\nok\r\n0\r\n\r\nX\r\n\r\n"])
def test_bytes_behind_the_response_forbid_to_use_the_connection_again(wire: bytes) -> None:
    response = response_of(wire)
    assert response.complete
    assert response.body()[0] == b"ok"
    assert not response.keeps_alive


def test_what_came_of_an_unfinished_body_is_kept() -> None:
    cut_in_chunk = response_of(CHUNKED + b"3\r\nabc\r\n5\r\nde")
    cut_in_size = response_of(CHUNKED + b"3\r\nabc\r\n5")
    cut_in_length = response_of(OK + b"Content-Length: 9\r\n\r\nabc")
    for response, body in [(cut_in_chunk, b"abcde"), (cut_in_size, b"abc"), (cut_in_length, b"abc")]:
        response.close()
        assert not response.complete
        assert response.malformed is None
        assert response.body()[0] == body


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        (b"SSH-2.0-OpenSSH", "SSH-2.0"),
        (b"HTTP/2 200\r\n\r\n", "HTTP/2"),
        (b"HTTP/1.1 two hundred\r\n\r\n", "two hundred"),
        (OK + b"Content-Length: -1\r\n\r\n", "-1"),
        (OK + b"Content-Length: 5, 6\r\n\r\n", "5, 6"),
        (OK + b"X: " + b"x" * 70_000, "65536"),
        (CHUNKED + b"zz\r\n\r\n", "zz"),
        (CHUNKED + b"3\r\nabcd\r\n\r\n", "3 bytes"),
        (CHUNKED + b"1" * 5_000 + b"\r\n\r\n", "1111"),
    ],
)
def test_what_is_no_http_response_is_called_so_and_ends_the_exchange(wire: bytes, said: str) -> None:
    response = Response()
    assert is_over(response, wire)
    assert not response.complete
    assert response.malformed is not None
    assert said in response.malformed


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
def test_any_body_comes_out_whole_from_any_cuts(chunks: list[bytes], cuts: list[int]) -> None:
    wire = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(data), data) for data in chunks) + b"0\r\n\r\n"
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    reads = [wire[start:stop] for start, stop in pairwise(edges)]
    response = Response()
    assert [is_over(response, data) for data in reads] == [False] * (len(reads) - 1) + [True]
    body, ends = response.body()
    assert body == b"".join(chunks)
    assert ends == sorted(ends)
    assert ends[-1] == len(body)
    assert response.keeps_alive
