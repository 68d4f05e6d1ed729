"""Turns for work that can wait, so that it never keeps the event loop from what has just arrived."""

from __future__ import annotations

import gevent
from gevent.lock import Semaphore

_TURN = Semaphore()
_PATIENCE_S = 0.05
_waiting = 0


def wait_for_quiet() -> None:
    """Sleep until the event loop has nothing else to do, but not for long; one greenlet goes on at a time.

    Reading a response takes about as long as taking in some fifty events. When many streams end together, reading all
    of them in one go would keep the others waiting until their packets pile up under one stamp.
    """
    global _waiting
    _waiting += 1
    try:
        # Shared among all that wait: a loop that is never idle must not hold the load back.
        with _TURN, gevent.Timeout(_PATIENCE_S / _waiting, False):
            gevent.idle()
    finally:
        _waiting -= 1
