"""From an exchange to what a request's row needs: status, times, counts and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from harness.client.exchange import End, Exchange
from harness.client.message import Message, ReadEvent, read_error, read_message
from harness.client.stamps import Clock
from harness.engines.base import Status, Timings, Usage

TokenSource = Literal["usage", "token_ids", "events"]
"""Who counted tokens: the engine; we, from the token ids in the stream; we, taking each output chunk for one token."""

_MAX_ERROR_LENGTH = 500
_STATUS_OF_END: Mapping[End, Status] = {
    "complete": "truncated",
    "closed": "truncated",
    "broken": "stream_error",
    "malformed": "stream_error",
    "timeout": "timeout",
    "cancelled": "cancelled",
    "unconnected": "connect_error",
}
"""Status of an exchange whose response gives no proof that it is whole."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One request as the client saw it. Times are ns since the epoch, durations ms; None is "not known".

    Whatever became known before a failure stays. If the clock was set during the request (`clock_stepped`), all
    durations that rest on it are None.
    """

    status: Status
    error: str | None
    http_status: int | None
    finish_reason: str | None
    text: str
    """The answer; reasoning is not part of it."""

    t_send: int | None
    """Just before the first byte was written."""
    t_first: int | None
    """Arrival of the first output (content, reasoning, tool call or token ids); of a plain body, of its last byte."""
    t_last: int | None
    """Arrival of the last output."""
    t_end: int | None
    """Arrival of the end: `[DONE]`, else the last byte, or the server's close."""
    clock: Clock
    clock_stepped: bool
    stamp_error_ms: float | None
    """How much earlier than `t_first` the first output can have arrived, at most: 0 unless one read brought it together
    with later bytes. None with the user clock, whose error nobody knows."""
    last_stamp_error_ms: float | None
    """The same for `t_last`."""

    connect_ms: float | None
    """What opening the connection took; None if it was open."""
    ttft_ms: float | None
    tpot_ms: float | None
    """(t_last - t_first) / (output_tokens - first_tokens); None if the divisor is 0, or if there is one chunk."""
    itl_ms: tuple[float, ...] | None
    """Gaps between consecutive output chunks, 0.0 within one read."""
    e2e_ms: float | None

    prompt_tokens: int | None
    prompt_tokens_source: TokenSource | None
    output_tokens: int | None
    output_tokens_source: TokenSource | None
    cached_tokens: int | None
    cached_tokens_source: TokenSource | None
    first_tokens: int | None
    """Tokens in the first output chunk: 1 unless the engine says otherwise; of a plain body, all of them."""

    queue_ms: float | None
    """As the engine reported; so are the next two."""
    prefill_ms: float | None
    decode_ms: float | None

    chunks: int
    """Output chunks."""
    coalesced: int
    """Output chunks that came in one read with an earlier one, and so share its stamp."""
    bytes: int
    """Length of the body, without its framing."""
    replica: str | None = None
    """Which of several servers answered, by the header of the response that tells it."""
    is_socket_error: bool = False
    """The connection could not be opened, or broke."""


def read_reply(exchange: Exchange, read_event: ReadEvent, replica_header: str = "") -> Reply:
    """Judge an exchange that has ended; `read_event` is the adapter's.

    `replica_header`: the header that tells which replica answered, in lower case; empty: none does.
    """
    response = exchange.response
    body, body_ends = response.body()
    has_answer = response.status is not None and response.status < 300
    message = read_message(response, body, body_ends, read_event) if has_answer else Message()
    status, error = _judge(exchange, message, body, read_event)

    outputs = [number for number, event in enumerate(message.events) if event.is_output]
    reads = [message.reads[number] for number in outputs]
    arrivals = [exchange.stamps[read] for read in reads]
    t_first, t_last = (arrivals[0], arrivals[-1]) if arrivals else (None, None)
    t_end = _t_end(exchange, message)
    stepped = exchange.clock_stepped

    usage = _last_known_usage([event.usage for event in message.events if event.usage is not None])
    output_tokens, output_tokens_source = usage.output_tokens, _source(usage.output_tokens)
    if output_tokens is None:
        output_tokens, output_tokens_source = _count_outputs(message, outputs)
    first_tokens = None
    if outputs:
        first_tokens = (message.events[outputs[0]].tokens or 1) if message.is_stream else output_tokens
    timings = next((event.timings for event in reversed(message.events) if event.timings is not None), Timings())

    return Reply(
        status=status,
        error=error,
        http_status=response.status,
        finish_reason=next((event.finish_reason for event in reversed(message.events) if event.finish_reason), None),
        text="".join([event.text for event in message.events]),
        t_send=exchange.t_send,
        t_first=t_first,
        t_last=t_last,
        t_end=t_end,
        clock=exchange.clock,
        clock_stepped=stepped,
        stamp_error_ms=_stamp_error_ms(exchange, message, body_ends, outputs[0]) if outputs else None,
        last_stamp_error_ms=_stamp_error_ms(exchange, message, body_ends, outputs[-1]) if outputs else None,
        connect_ms=exchange.connect_ms,
        ttft_ms=None if stepped else _ms(exchange.t_send, t_first),
        tpot_ms=None if stepped else _tpot_ms(arrivals, output_tokens, first_tokens),
        itl_ms=None if stepped else tuple([(later - earlier) / 1e6 for earlier, later in pairwise(arrivals)]),
        e2e_ms=None if stepped else _ms(exchange.t_send, t_end),
        prompt_tokens=usage.prompt_tokens,
        prompt_tokens_source=_source(usage.prompt_tokens),
        output_tokens=output_tokens,
        output_tokens_source=output_tokens_source,
        cached_tokens=usage.cached_tokens,
        cached_tokens_source=_source(usage.cached_tokens),
        first_tokens=first_tokens,
        queue_ms=timings.queue_ms,
        prefill_ms=timings.prefill_ms,
        decode_ms=timings.decode_ms,
        chunks=len(outputs),
        coalesced=len(reads) - len(set(reads)),
        bytes=len(body),
        replica=response.headers.get(replica_header) if replica_header else None,
        is_socket_error=exchange.ended in ("unconnected", "broken"),
    )


def _judge(exchange: Exchange, message: Message, body: bytes, read_event: ReadEvent) -> tuple[Status, str | None]:
    response = exchange.response
    if response.status is not None and response.status >= 300:
        return "http_error", _shorten(read_error(body, read_event) or f"HTTP {response.status} {response.reason}")
    if message.error is not None:
        return "stream_error", _shorten(message.error)
    if message.is_whole:
        return "ok", None
    error = exchange.error
    if exchange.ended == "complete":
        error = "the stream ended without [DONE]" if message.is_stream else "the body ended amid its JSON object"
    return _STATUS_OF_END[exchange.ended], error


def _t_end(exchange: Exchange, message: Message) -> int | None:
    if message.done_read is not None:
        return exchange.stamps[message.done_read]
    if exchange.response.complete and exchange.response.delimiter != "close":
        return exchange.stamps[-1]
    return exchange.t_close


def _stamp_error_ms(exchange: Exchange, message: Message, body_ends: list[int], number: int) -> float | None:
    """How much later than its true arrival event `number` can have been stamped.

    A read has the stamp of its last packet. If the event ends its read, that is its own; else it may have come as early
    as right after the read before.
    """
    if exchange.clock != "kernel" or exchange.clock_stepped:
        return None
    read = message.reads[number]
    if body_ends[read] == message.ends[number]:
        return 0.0
    return _ms(exchange.stamps[read - 1] if read else exchange.t_send, exchange.stamps[read])


def _tpot_ms(arrivals: Sequence[int], output_tokens: int | None, first_tokens: int | None) -> float | None:
    """None, too, where all output came in one chunk, however many tokens that was: there is no time between tokens."""
    if len(arrivals) < 2 or output_tokens is None or first_tokens is None or output_tokens <= first_tokens:
        return None
    return (arrivals[-1] - arrivals[0]) / 1e6 / (output_tokens - first_tokens)


def _ms(earlier: int | None, later: int | None) -> float | None:
    return None if earlier is None or later is None else (later - earlier) / 1e6


def _last_known_usage(usages: Sequence[Usage]) -> Usage:
    """Each count from the last event that has it: running usage (continuous_usage_stats) has no cached tokens."""

    def last(counts: list[int | None]) -> int | None:
        return next((count for count in reversed(counts) if count is not None), None)

    return Usage(
        prompt_tokens=last([usage.prompt_tokens for usage in usages]),
        output_tokens=last([usage.output_tokens for usage in usages]),
        cached_tokens=last([usage.cached_tokens for usage in usages]),
    )


def _count_outputs(message: Message, outputs: Sequence[int]) -> tuple[int | None, TokenSource | None]:
    """Output tokens where the engine gives no count."""
    tokens = [message.events[number].tokens for number in outputs]
    known = [count for count in tokens if count is not None]
    if known and len(known) == len(tokens):
        return sum(known), "token_ids"
    if outputs and message.is_stream:
        return len(outputs), "events"
    return None, None


def _source(count: int | None) -> TokenSource | None:
    return None if count is None else "usage"


def _shorten(error: str) -> str:
    return error if len(error) <= _MAX_ERROR_LENGTH else error[: _MAX_ERROR_LENGTH - 1] + "…"
