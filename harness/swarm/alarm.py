"""Sleeps until an instant of the wall clock, to a fraction of a millisecond where the system allows it.

gevent's own timers are as fine as epoll's timeout, a millisecond. Linux has timers that are files (timerfd_create(2)),
for which the event loop waits as for a socket; they end within a tenth of that.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

import gevent

_CLOCK_REALTIME = 0
_ABSOLUTE = 1
_READ = 1
_NS = 1_000_000_000


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Timer(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Alarm:
    """For one greenlet. `close` it in the end."""

    def __init__(self) -> None:
        """Raises OSError if the system has no more files to give."""
        self._libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
        if self._libc is None:
            return
        self._fd: int = self._libc.timerfd_create(_CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._watcher = gevent.get_hub().loop.io(self._fd, _READ)

    def sleep_until(self, time_ns: int) -> bool:
        """Returns at once if `time_ns` has passed, and then False; not a moment before it otherwise."""
        slept = False
        while (left_ns := time_ns - time.time_ns()) > 0:
            slept = True
            if self._libc is None:
                gevent.sleep(left_ns / _NS)
                continue
            timer = _Timer(_Timespec(0, 0), _Timespec(*divmod(time_ns, _NS)))
            self._libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(timer), None)
            gevent.get_hub().wait(self._watcher)
            os.read(self._fd, 8)
        return slept

    def close(self) -> None:
        if self._libc is not None:
            self._watcher.stop()
            self._watcher.close()
            os.close(self._fd)
