"""Arrival stamps in ns since the epoch: the kernel's own where it gives them, and a watch on steps of that clock."""

from __future__ import annotations

import platform
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal

Clock = Literal["kernel", "user"]
"""Who stamped an arrival: the kernel when the packet came in, or this process when it got round to reading it."""

ANCILLARY_BYTES = 64
"""Room that `recvmsg` needs for the one control message with the stamp."""

STEP_THRESHOLD_NS = 1_000_000
"""A change of realtime minus monotonic beyond this is a step of the clock; slewing changes neither by itself."""

# The numbers of asm-generic/socket.h. Only 64-bit kernels use them with a `struct timespec` of two 64-bit words.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@qq")
_HAS_KERNEL_STAMPS = (
    sys.platform == "linux" and struct.calcsize("P") == 8 and not platform.machine().startswith(("sparc", "parisc"))
)


def _start_stamping() -> socket.socket | None:
    """A socket that asks for stamps as long as this process lives.

    Linux stamps packets only while some socket wants it, and takes a moment to begin: without this one the first
    response of a process could arrive unstamped.
    """
    if not _HAS_KERNEL_STAMPS:
        return None
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    enable_kernel_stamps(sock)
    return sock


def enable_kernel_stamps(sock: socket.socket) -> bool:
    """Ask the kernel to stamp what arrives on `sock`; False where it cannot."""
    if not _HAS_KERNEL_STAMPS:
        return False
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def kernel_stamp(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    """The stamp of the last packet read, in `recvmsg`'s control messages, of which there is one."""
    seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
    stamp: int = seconds * 1_000_000_000 + nanoseconds
    return stamp


def clock_offset_ns(
    realtime: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
) -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, good to some 10 us.

    Reads realtime between two readings of monotonic, and keeps the tightest of a few tries, so that losing the
    processor between two readings does not look like a step.
    """
    best_window, best_offset = None, 0
    for _ in range(5):
        before = monotonic()
        now = realtime()
        window = monotonic() - before
        if best_window is None or window < best_window:
            best_window, best_offset = window, now - before - window // 2
        if window < 20_000:
            break
    return best_offset


def has_stepped(offset_before_ns: int, offset_after_ns: int) -> bool:
    """Whether CLOCK_REALTIME was set between two values of `clock_offset_ns`."""
    return abs(offset_after_ns - offset_before_ns) > STEP_THRESHOLD_NS


_STAMPING = _start_stamping()
