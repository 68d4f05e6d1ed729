"""A kept-alive HTTP/1.1 connection that stamps what arrives, for greenlets that share one event loop with thousands."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event as Signal

from harness.client.channel import READ, Channel, send_all
from harness.client.exchange import End, Exchange
from harness.client.opening import open_channel
from harness.client.quiet import wait_for_quiet
from harness.client.stamps import clock_offset_ns, has_stepped


class _Ended(Exception):
    """Leaves an exchange that has ended; `Exchange.ended` says how."""


class Connection:
    """Carries one request at a time to `host:port`; opened when needed, and anew after the server closed it.

    A callback of the event loop takes the reads, not the greenlet that waits for the response, and they are looked at
    when all are there: that keeps short what happens between two arrivals. Nothing is ever sent twice.
    """

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        *,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 600.0,
    ) -> None:
        """`read_timeout_s` is the longest silence of the server that is waited through, at any point of an exchange."""
        self._host, self._port, self._tls = host, port, tls
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._channel: Channel | None = None
        self._watcher: Any = None
        self._wake = Signal()
        self._spent = False  # the channel cannot carry another request
        self._exchange = Exchange()  # the one under way
        self._busy = False  # a greenlet is in `exchange`
        self._over = True  # the exchange has ended
        self._ripe = False  # its response may be over
        self._heard_s = 0.0  # when the server was last heard, monotonic

    @property
    def is_busy(self) -> bool:
        """A request is under way."""
        return self._busy

    def exchange(self, request: bytes, exchange: Exchange) -> None:
        """Send `request`, head and body, and wait for the end of its response; a fresh `exchange` takes in all of it.

        Failures are told by `Exchange.ended`. Only what is thrown into the greenlet is raised, such as the GreenletExit
        of a kill; the exchange then has all that arrived before.
        """
        self._exchange = exchange
        self._busy, self._over, self._ripe = True, False, False
        offset_ns = clock_offset_ns()
        keep = False
        try:
            channel = self._open_channel(exchange)
            self._watcher.callback = self._reader(channel, exchange)
            sent = self._send(channel, exchange, request)
            self._await_end(exchange)
            keep = sent and exchange.ended == "complete" and exchange.response.keeps_alive and not self._spent
        except _Ended:
            pass
        finally:
            self._busy, self._over, self._exchange = False, True, Exchange()
            if self._channel is not None:
                exchange.clock = self._channel.clock
                if not keep:
                    self._drop_channel()
            if exchange.t_close is None:
                exchange.response.abandon()
            else:
                exchange.response.close()
            exchange.clock_stepped = has_stepped(offset_ns, clock_offset_ns())

    def cancel(self) -> None:
        """From another greenlet: make the exchange under way, if there is one, return at once with what has arrived."""
        self._end("cancelled")

    def close(self) -> None:
        """Close the connection and end the exchange under way, if there is one. The next opens another connection."""
        if self._busy:
            self._end("cancelled")
            self._spent = True  # closed by the greenlet that uses it
        elif self._channel is not None:
            self._drop_channel()

    def _drop_channel(self) -> None:
        assert self._channel is not None
        self._watcher.stop()
        self._watcher.close()
        self._channel.close()
        self._channel = None

    def _open_channel(self, exchange: Exchange) -> Channel:
        if self._channel is not None:
            self._on_idle()  # the loop may not have had time yet to see that the server closed
            if not self._spent:
                return self._channel
            self._drop_channel()
        started_s = time.monotonic()
        timeout = gevent.Timeout(self._connect_timeout_s)
        try:
            with timeout:
                channel = open_channel(self._host, self._port, self._tls, self._wait)
        except gevent.Timeout as expired:
            if expired is not timeout:
                raise
            self._end("unconnected", f"no connection to {self._host}:{self._port} in {self._connect_timeout_s:g} s")
            raise _Ended from None
        except OSError as error:
            self._end("unconnected", str(error))
            raise _Ended from None
        exchange.connect_ms = (time.monotonic() - started_s) * 1e3
        self._channel, self._spent = channel, False
        self._watcher = gevent.get_hub().loop.io(channel.fileno(), READ)
        self._watcher.start(self._on_idle)
        return channel

    def _send(self, channel: Channel, exchange: Exchange, request: bytes) -> bool:
        """Whether all of it was sent; if not, what the server still says is waited for."""

        def wait(fd: int, event: int) -> None:
            self._wait(fd, event, self._read_timeout_s)
            if self._ripe:  # an answer before the end of the request, such as 413
                self._look(exchange)

        try:
            sealed = channel.seal(request)
        except OSError as error:
            self._end("broken", f"the request cannot be encrypted: {error}")
            raise _Ended from None
        exchange.t_send = time.time_ns()
        try:
            send_all(channel, sealed, wait)
        except OSError as error:
            exchange.error = f"the server stopped taking the request: {error.strerror or error}"
            return False
        finally:
            self._heard_s = time.monotonic()
        return True

    def _reader(self, channel: Channel, exchange: Exchange) -> Callable[[], None]:
        """What the event loop calls whenever there is something to read of this exchange's response."""
        response = exchange.response
        receive, feed, add_stamp, monotonic = channel.receive, response.feed, exchange.stamps.append, time.monotonic

        def read() -> None:
            try:
                data, stamp = receive()
            except BlockingIOError:
                return
            except OSError as error:
                self._end("broken", f"the connection broke: {error.strerror or error}")
                return
            if data:
                add_stamp(stamp)
                self._heard_s = monotonic()
                if feed(data):
                    self._ripe = True
                    self._wake.set()
            if channel.at_end or not data:
                exchange.t_close = stamp
                self._watcher.stop()
                self._spent = self._ripe = True
                self._wake.set()

        return read

    def _await_end(self, exchange: Exchange) -> None:
        """Sleep until the exchange has ended; a silence of `read_timeout_s` ends it."""
        while not self._over:
            patience_s = self._heard_s + self._read_timeout_s - time.monotonic()
            if self._ripe:
                wait_for_quiet()
                self._look(exchange)
            elif patience_s > 0:
                self._wake.clear()
                self._wake.wait(patience_s)
            else:
                self._end("timeout", f"nothing came from the server for {self._read_timeout_s:g} s")

    def _look(self, exchange: Exchange) -> None:
        """End the exchange if its response is over."""
        self._ripe = False
        response = exchange.response
        if exchange.t_close is None:
            response.decode()
        else:
            response.close()
        if response.complete:
            self._end("complete")
        elif response.malformed:
            self._end("malformed", f"not an HTTP/1.x response: {response.malformed}")
        elif exchange.t_close is not None:
            self._end("closed", "the server closed the connection before the response was complete")

    def _wait(self, fd: int, event: int, limit_s: float | None = None) -> None:
        """Sleep until `fd` is ready for READ or WRITE. Raises _Ended if the exchange ends first, or after `limit_s`."""
        if self._over:
            raise _Ended
        self._wake.clear()
        watcher = gevent.get_hub().loop.io(fd, event)
        watcher.start(self._wake.set)
        try:
            in_time = self._wake.wait(limit_s)
        finally:
            watcher.stop()
            watcher.close()
        if not in_time:
            self._end("timeout", f"the server took no bytes of the request for {limit_s:g} s")
        if self._over:
            raise _Ended

    def _end(self, ended: End, error: str | None = None) -> None:
        """End the exchange under way; the first end stands."""
        if self._over:
            return
        self._over = True
        self._exchange.ended = ended
        self._exchange.error = error or self._exchange.error
        if self._channel is not None:
            self._watcher.callback = self._on_idle
        self._wake.set()

    def _on_idle(self) -> None:
        """Between exchanges nothing should come: a close, or bytes that nobody asked for, end the connection."""
        assert self._channel is not None
        try:
            self._channel.receive()
        except BlockingIOError:
            return
        except OSError:
            pass  # broken is no worse than closed
        self._spent = True
        self._watcher.stop()
        if not self._busy:
            self._drop_channel()
