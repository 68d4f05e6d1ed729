"""What the body of a response says: a stream of events, or one JSON object."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from harness.client.framing import Response
from harness.client.sse import split_events
from harness.engines.base import Event

ReadEvent = Callable[[Mapping[str, Any]], Event]
"""What one JSON object of the target's responses says: the adapter's `read_event`."""

_DONE = b"[DONE]"


@dataclass(slots=True)
class Message:
    """The events of a body; a plain body is one event."""

    events: list[Event] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """For each event the offset in the body where it ends."""
    reads: list[int] = field(default_factory=list)
    """For each event the number of the read that brought its end."""
    is_stream: bool = True
    is_whole: bool = False
    """There is proof that nothing is missing."""
    done_read: int | None = None
    """The read that brought `[DONE]`."""
    error: str | None = None
    """What the engine said went wrong, or what is wrong with its message."""


def read_message(response: Response, body: bytes, body_ends: list[int], read_event: ReadEvent) -> Message:
    """Read as much of the body as came: a stream or, as a server may answer even if asked for a stream, a plain body.

    `body` and `body_ends` as `Response.body` gives them.
    """
    if body.lstrip().startswith(b"{"):
        return _read_plain(body, body_ends, response, read_event)
    return _read_stream(body, body_ends, response, read_event)


def read_error(body: bytes, read_event: ReadEvent) -> str:
    """The engine's own words in the body of an HTTP error; the body as it is if there are none."""
    parsed, _ = _decode([body])
    message = read_event(parsed[0]).error if parsed else None
    return message or body.decode(errors="replace").strip()


def _read_plain(body: bytes, body_ends: list[int], response: Response, read_event: ReadEvent) -> Message:
    message = Message(is_stream=False)
    parsed, error = _decode([body])
    if parsed:
        event = read_event(parsed[0])
        message.events, message.ends, message.reads = [event], [len(body)], [bisect_left(body_ends, len(body))]
        message.is_whole, message.error = response.complete, event.error
    elif response.complete and response.delimiter != "close":
        message.error = error  # in any other case its end may be missing
    return message


def _read_stream(body: bytes, body_ends: list[int], response: Response, read_event: ReadEvent) -> Message:
    found = split_events(body)
    payloads, reads = found.data, found.reads(body_ends)
    message = Message()
    if _DONE in payloads:
        number = payloads.index(_DONE)
        message.done_read = reads[number]
        payloads = payloads[:number]
    parsed, message.error = _decode(payloads)
    events = [read_event(value) for value in parsed]
    message.events, message.ends, message.reads = events, found.ends[: len(events)], reads[: len(events)]
    if message.error is None:
        message.error = next((event.error for event in events if event.error is not None), None)
    # Without [DONE] the close proves nothing: a server that dies closes its connections, too.
    message.is_whole = message.done_read is not None or (
        response.complete and response.delimiter != "close" and any(event.finish_reason for event in reversed(events))
    )
    return message


def _decode(payloads: list[bytes]) -> tuple[list[dict[str, Any]], str | None]:
    """The JSON objects up to the first payload that is none, and what is wrong with that one."""
    try:
        together = orjson.loads(b"[" + b",".join(payloads) + b"]")  # a fraction of the time of one by one
    except ValueError:
        together = []
    if len(together) == len(payloads) and set(map(type, together)) <= {dict}:
        return together, None
    objects: list[dict[str, Any]] = []
    for payload in payloads:
        try:
            value = json.loads(payload)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            return objects, f"not a JSON object: {payload[:200].decode(errors='replace')}"
        objects.append(value)
    return objects, None
