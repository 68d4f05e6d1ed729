"""Server-sent events (WHATWG HTML, section 9.2.6): a body to its events, and events to the reads that brought them."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

_BLANK_LINES = (b"\n", b"\r\n", b"\r")


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a body, in order. One that lacks the blank line which ends an event is incomplete and left out."""

    data: list[bytes]
    """For each event its data lines, joined with a line feed; never empty."""
    ends: list[int]
    """For each event the offset in the body just behind its blank line."""

    def reads(self, body_ends: list[int]) -> list[int]:
        """For each event the number of the read that brought its end; `body_ends` as `Response.body` gives it."""
        return [bisect_left(body_ends, end) for end in self.ends]


def split_events(body: bytes) -> Events:
    """All complete events that have data. Comments and the fields event, id and retry are passed over.

    A line `error: {...}` counts as data that is {"error": {...}}.
    """
    return _split_plain(body) or _split_lines(body)


def _split_plain(body: bytes) -> Events | None:
    """The usual body at twice the speed: nothing but events of one line, `data: ...`. None for any other."""
    end = body.rfind(b"\n\n") + 2
    if not body.startswith(b"data: ") or end < 8 or b"\r" in body:
        return None
    data = body[6 : end - 2].split(b"\n\ndata: ")
    if not all(data) or body.count(b"\n", 0, end) != 2 * len(data):
        return None
    return Events(data, list(accumulate([len(line) + 8 for line in data])))


def _split_lines(body: bytes) -> Events:
    data: list[bytes] = []
    ends: list[int] = []
    pending = b""
    offset = 0
    for line in body.splitlines(keepends=True):  # of bytes: at \n, \r\n and \r, as events want it
        offset += len(line)
        if line.startswith(b"data:"):
            value = line[5:].rstrip(b"\r\n")
            if value.startswith(b" "):
                value = value[1:]
            pending = pending + b"\n" + value if pending else value
        elif line.startswith(b"error: {"):
            # No field of the standard: llama.cpp's server of 2025 ends a stream that fails so, with the bare error.
            pending = b'{"error": ' + line[7:].rstrip(b"\r\n") + b"}"
        elif pending and line in _BLANK_LINES:
            data.append(pending)
            ends.append(offset)
            pending = b""
    return Events(data, ends)
