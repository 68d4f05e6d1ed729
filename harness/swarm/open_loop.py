"""The open loop on one worker: sessions become due at their own times, and whoever is free plays them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import gevent
from gevent.event import AsyncResult, Event

from harness.swarm.alarm import Alarm
from harness.workload.schedule import Arrival

REST_AFTER_S = 0.01
"""So long at most are arrivals that are overdue handed over one after the other: other greenlets need the loop, too."""
REST_S = 0.0005
"""A sleep of no length would let no timer run."""


class OpenLoop:
    """Hands each arrival to an idle seat when it is due, or refuses it. A seat is a user of Locust's.

    Times are absolute, so nothing adds up; what is handed over is ready before, and nothing is waited for but the next
    arrival.
    """

    def __init__(
        self, arrivals: Iterator[Arrival], start_ns: int, refuse: Callable[[Arrival], None], draining: Event
    ) -> None:
        """`refuse` is called for an arrival that finds no idle seat. Nothing arrives once `draining` is set."""
        self._arrivals = arrivals
        self._start_ns = start_ns
        self._refuse = refuse
        self._draining = draining
        self._idle: dict[AsyncResult[Arrival | None], None] = {}
        self._greenlet = gevent.spawn(self._dispatch)

    def wait(self) -> Arrival | None:
        """In a seat's greenlet: what to play next; None: nothing any more, as the run drains.

        The seat that was taken last is the next to be taken, so few connections serve a load that needs few.
        """
        if self._draining.is_set():
            return None
        seat: AsyncResult[Arrival | None] = AsyncResult()
        self._idle[seat] = None
        try:
            arrival: Arrival | None = seat.get()
            return arrival
        except gevent.GreenletExit:  # the user is taken away
            self._idle.pop(seat, None)
            if seat.ready() and seat.value is not None:
                self._hand_over(seat.value)
            raise

    @property
    def problem(self) -> str:
        """Why sessions have stopped to arrive before the run drains; empty: they have not."""
        error = self._greenlet.exception
        return "" if error is None else f"sessions stopped to arrive: {error!r}"

    def close(self) -> None:
        """Let all idle seats go; call it once `draining` is set."""
        self._greenlet.kill()
        while self._idle:
            self._idle.popitem()[0].set(None)

    def _dispatch(self) -> None:
        with closing(Alarm()) as alarm:
            self._follow(alarm)

    def _follow(self, alarm: Alarm) -> None:
        rested_s = time.monotonic()
        for arrival in self._arrivals:
            if alarm.sleep_until(self._start_ns + round(max(0.0, arrival.arrives_s) * 1e9)):
                rested_s = time.monotonic()
            elif time.monotonic() - rested_s > REST_AFTER_S:
                gevent.sleep(REST_S)
                rested_s = time.monotonic()
            if self._draining.is_set():
                return
            self._hand_over(arrival)

    def _hand_over(self, arrival: Arrival) -> None:
        if self._idle:
            self._idle.popitem()[0].set(arrival)
        else:
            self._refuse(arrival)
