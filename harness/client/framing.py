"""HTTP/1.x framing of one response (RFC 9112): taken in read by read as it arrives, exact for every cut, no sockets.

A stream of tokens is thousands of small reads, so its framing is not followed read by read. While a chunked body comes
in, `feed` only looks whether a read can be the last; `decode` then does the rest in one go, when there is time for it.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Literal

Delimiter = Literal["none", "length", "chunked", "close"]
"""What ends the body: it has none, Content-Length, the last chunk, or the close of the connection."""

_MAX_HEAD_BYTES = 65_536
_MAX_CHUNK_LINE_BYTES = 4_096
_MESSAGE_END = b"\r\n\r\n"
_LINE_FEED = 10
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS_LINE = re.compile(r"HTTP/1\.(\d) +(\d{3})(?: +(.*))?")
_CHUNK_LINE = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r\n")


class Response:
    """One response: `feed` every read, `decode` when `feed` says so, `close` or `abandon` it if its end never came."""

    def __init__(self) -> None:
        self.status: int | None = None
        """None until the head is complete."""
        self.reason = ""
        self.headers: dict[str, str] = {}
        """Names in lower case; the values of repeated headers joined with a comma."""
        self.delimiter: Delimiter | None = None
        self.complete = False
        """All of the message has come, as far as its framing can tell."""
        self.malformed: str | None = None
        """What shows that this is no HTTP/1.x response; nothing is decoded from there on."""
        self._reads: list[bytes] = []
        self._joined = 0  # reads that are in _wire
        self._wire = bytearray()
        self._position = 0  # everything in _wire before it is decoded
        self._spans: list[tuple[int, int]] = []  # where in _wire the body is
        self._length = 0  # bytes of a Content-Length body
        self._missing = 0  # bytes of it that have not come
        self._persistent = False

    def feed(self, data: bytes) -> bool:
        """Take in one read (not empty). True if the message may be over: then `decode` tells."""
        self._reads.append(data)
        delimiter = self.delimiter
        if delimiter == "chunked":
            # A message ends with a line that is not empty and one that is, which a read of more than 4 bytes shows by
            # itself. (Should a server send something behind that in the same packet, only `close` finds the end.)
            return len(data) <= 4 or (data.endswith(_MESSAGE_END) and data[-5] != _LINE_FEED)
        if delimiter == "length":
            self._missing -= len(data)
            return self._missing <= 0
        if delimiter == "close":
            return False
        return self.decode()

    def decode(self) -> bool:
        """Bring everything up to date with the reads. True when the message is complete, or can never be."""
        self._wire += b"".join(self._reads[self._joined :])
        self._joined = len(self._reads)
        while self.delimiter is None and self.malformed is None and self._decode_head():
            pass
        if not self.complete and self.malformed is None:
            if self.delimiter == "none":
                self.complete = True
            elif self.delimiter == "length":
                self._decode_length()
            elif self.delimiter == "chunked":
                self._decode_chunks()
        return self.complete or self.malformed is not None

    def close(self) -> None:
        """The server closed the connection: nothing more will come."""
        self.abandon()
        if self.delimiter == "close":
            self.complete = True

    def abandon(self) -> None:
        """Nothing more will be read: decode what there is, unfinished parts too."""
        if not self.decode():
            self._take_unfinished()

    @property
    def keeps_alive(self) -> bool:
        """The connection can carry another request: the server lets it, and not a byte followed the message."""
        return self.complete and self._persistent and self._position == sum(map(len, self._reads))

    def body(self) -> tuple[bytes, list[int]]:
        """The decoded body, and for each read how many bytes of it had come with that read.

        The byte at offset i came with the first read whose number is greater than i.
        """
        if not self._spans:
            return b"", [0] * len(self._reads)
        wire = memoryview(self._wire)
        body = b"".join([wire[start:stop] for start, stop in self._spans])
        spans = iter(self._spans)
        start, stop = next(spans)
        before = 0  # bytes of the body in the spans before this one
        ends = []
        for wire_end in accumulate(map(len, self._reads)):
            while wire_end >= stop and start < stop:
                before += stop - start
                start, stop = next(spans, (stop, stop))
            ends.append(before + wire_end - start if start < wire_end < stop else before)
        return body, ends

    def _decode_head(self) -> bool:
        """Decode a head, if all of it is there."""
        wire, start = self._wire, self._position
        if not wire.startswith(b"HTTP/1."[: len(wire) - start], start):
            self.malformed = f"it begins with {bytes(wire[start : start + 40])!r}"
            return False
        end = _HEAD_END.search(wire, start)
        if end is None:
            if len(wire) - start > _MAX_HEAD_BYTES:
                self.malformed = f"its head is longer than {_MAX_HEAD_BYTES} bytes"
            return False
        status_line, *fields = wire[start : end.start()].decode("latin-1").split("\n")
        match = _STATUS_LINE.fullmatch(status_line.rstrip("\r"))
        if match is None:
            self.malformed = f"its status line is {status_line[:80]!r}"
            return False
        self._position = end.end()
        status = int(match[2])
        if status < 200 and status != 101:  # an interim response, e.g. 100 Continue: the real one follows
            return True
        self.status, self.reason = status, match[3] or ""
        for field in fields:
            name, _, value = field.partition(":")
            name, value = name.strip().lower(), value.strip()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        connection = _tokens(self.headers.get("connection", ""))
        self._persistent = "close" not in connection and (match[1] != "0" or "keep-alive" in connection)
        self._choose_delimiter(status)
        return False

    def _choose_delimiter(self, status: int) -> None:
        """RFC 9112, section 6.3."""
        if status in (101, 204, 304):
            self.delimiter = "none"
        elif "transfer-encoding" in self.headers:
            codings = _tokens(self.headers["transfer-encoding"])
            self.delimiter = "chunked" if codings[-1] == "chunked" else "close"
        elif "content-length" in self.headers:
            lengths = set(_tokens(self.headers["content-length"]))
            length = lengths.pop()
            if lengths or not (length.isascii() and length.isdigit()):
                self.malformed = f"its Content-Length is {self.headers['content-length'][:80]!r}"
                return
            self.delimiter, self._length = "length", int(length)
        else:
            self.delimiter = "close"
        if self.delimiter == "close":
            self._persistent = False

    def _decode_length(self) -> None:
        stop = self._position + self._length
        self._missing = stop - len(self._wire)
        if self._missing <= 0:
            self._spans.append((self._position, stop))
            self._position = stop
            self.complete = True

    def _decode_chunks(self) -> None:
        wire, position, end = self._wire, self._position, len(self._wire)
        chunk_line, add_span = _CHUNK_LINE.match, self._spans.append
        while match := chunk_line(wire, position):
            start = match.end()
            size = int(match[1], 16)
            if size == 0:
                # Trailers, mostly none, end with an empty line; the line of the last chunk may be the one before it.
                section_end = wire.find(_MESSAGE_END, start - 2)
                if section_end >= 0:
                    position = section_end + 4
                    self.complete = True
                break
            stop = start + size
            if stop + 2 > end:
                break
            if not wire.startswith(b"\r\n", stop):
                self.malformed = f"a chunk of {size} bytes does not end after them"
                break
            add_span((start, stop))
            position = stop + 2
        else:
            line = bytes(wire[position : position + _MAX_CHUNK_LINE_BYTES])
            if b"\r\n" in line or len(line) == _MAX_CHUNK_LINE_BYTES:
                self.malformed = f"where a chunk should say its size it says {line[:40]!r}"
        self._position = position

    def _take_unfinished(self) -> None:
        """Add the last part of the body, whose end has not come."""
        start, stop = self._position, len(self._wire)
        if self.delimiter == "chunked":
            match = _CHUNK_LINE.match(self._wire, start)
            if match is None:
                return
            start = match.end()
            stop = min(stop, start + int(match[1], 16))
        if self.delimiter in ("length", "chunked", "close") and stop > start:
            self._spans.append((start, stop))
            self._position = stop


def _tokens(value: str) -> list[str]:
    return [token.strip() for token in value.lower().split(",")]
