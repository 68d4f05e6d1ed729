"""What a connection reads from and writes to: a non-blocking socket; `harness.client.tls` has the one under TLS."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Protocol

from harness.client.stamps import ANCILLARY_BYTES, Clock, enable_kernel_stamps, kernel_stamp

READ, WRITE = 1, 2
"""What to wait for, by the event loop's numbers."""

READ_BYTES = 65_536

Wait = Callable[[int, int], None]
"""Sleeps until a file descriptor is ready: (file descriptor, READ or WRITE)."""


class Channel(Protocol):
    clock: Clock
    """Falls to "user" with the first read that carries no stamp of the kernel."""
    at_end: bool
    """The other side said, within the stream, that nothing more will come."""

    def fileno(self) -> int: ...

    def receive(self) -> tuple[bytes, int]:
        """What has arrived, and when, in ns since the epoch; b"" at the end.

        Raises BlockingIOError if nothing has arrived, another OSError if the connection is broken.
        """
        ...

    def seal(self, data: bytes) -> bytes:
        """`data` as it goes over the wire."""
        ...

    def send(self, sealed: memoryview, /) -> int:
        """How many bytes the socket took. Raises BlockingIOError if none, another OSError if it is broken."""
        ...

    def close(self) -> None: ...


class PlainChannel:
    """A connected socket as it is."""

    at_end = False

    def __init__(self, sock: socket.socket) -> None:
        self.clock: Clock = "kernel" if enable_kernel_stamps(sock) else "user"
        self.fileno = sock.fileno
        self.send = sock.send
        self.close = sock.close
        self._recvmsg = sock.recvmsg

    def receive(self) -> tuple[bytes, int]:
        data, ancillary, _, _ = self._recvmsg(READ_BYTES, ANCILLARY_BYTES)
        if ancillary:
            return data, kernel_stamp(ancillary)
        if data:
            self.clock = "user"
        return data, time.time_ns()

    def seal(self, data: bytes) -> bytes:
        return data


def send_all(channel: Channel, sealed: bytes, wait: Wait) -> None:
    """Send all of it, sleeping while the socket takes no more. Raises OSError if the connection is broken."""
    rest = memoryview(sealed)
    while rest:
        try:
            rest = rest[channel.send(rest) :]
        except BlockingIOError:
            wait(channel.fileno(), WRITE)
