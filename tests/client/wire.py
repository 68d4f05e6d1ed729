"""Responses as bytes: recorded ones, made ones, and what becomes of them when they arrive in given reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.client.exchange import Exchange
from harness.client.reply import Reply, read_reply
from harness.engines.reading import read_event

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDINGS = sorted(str(path.relative_to(FIXTURES)) for path in FIXTURES.glob("*/*.response.http"))

T_SEND = 1_000_000_000
MS = 1_000_000

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def recording(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(data: str) -> bytes:
    """One stream event in a chunk of its own."""
    return chunk(f"data: {data}\n\n".encode())


def word(text: str, finish: str = "null") -> bytes:
    """A chat chunk with `text`."""
    return event(f'{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}]}}')


ROLE = event('{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}')
FINISH = event('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
DONE = event("[DONE]")


def arrive(reads: Iterable[bytes], stamps: Sequence[int] | None = None, *, closed: bool = True) -> Exchange:
    """The exchange in which `reads` came in, by default 10 ms apart, the first 10 ms after the send.

    If they do not complete the response, the server closed the connection 1 ms after the last; with `closed` False the
    client gave up.
    """
    reads = list(reads)
    exchange = Exchange(t_send=T_SEND, clock="kernel")
    response = exchange.response
    stamps = [T_SEND + (number + 1) * 10 * MS for number in range(len(reads))] if stamps is None else stamps
    for data, stamp in zip(reads, stamps, strict=True):
        exchange.stamps.append(stamp)
        if response.feed(data) and response.decode():
            exchange.ended = "complete" if response.complete else "malformed"
    if exchange.ended == "cancelled":
        if closed:
            exchange.t_close = exchange.stamps[-1] + MS
            response.close()
            exchange.ended, exchange.error = ("complete", None) if response.complete else ("closed", "closed early")
        else:
            response.abandon()
    return exchange


def reply_to(reads: Iterable[bytes], stamps: Sequence[int] | None = None, *, closed: bool = True) -> Reply:
    return read_reply(arrive(reads, stamps, closed=closed), read_event)
