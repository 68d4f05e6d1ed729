"""The router before several replicas: HTTP/1.1 in both directions, read only as far as it must be."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Sequence

import httptools

from harness.sim.faulty import GENERATING
from harness.sim.routing import Policy

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)
_OF_ONE = re.compile(rb"/replicas/(\d+)(?=/)")
_RESET = struct.pack("ii", 1, 0)

Address = tuple[str, int]


class Router:
    """Hands each request on to a replica, and what comes back to the client, as it comes.

    Requests that generate go where the policy says; `/replicas/N/...` goes to replica N without that prefix; all else
    goes to the first replica. Each side's connections are kept alive.
    """

    def __init__(self, replicas: Sequence[Address], policy: Policy) -> None:
        self.loads = [0] * len(replicas)
        """Requests under way, by replica."""
        self._replicas = replicas
        self._policy = policy
        self._idle: list[list[ReplicaSide]] = [[] for _ in replicas]

    def protocol(self) -> ClientSide:
        """For a new connection of a client."""
        return ClientSide(self)

    def route(self, method: bytes, path: bytes, body: bytes) -> tuple[int, bytes] | None:
        """The replica, and the path that it is asked for; None: there is no such replica."""
        if one := _OF_ONE.match(path):
            number = int(one[1])
            return (number, path[one.end() :]) if number < len(self._replicas) else None
        if method == b"POST" and path.partition(b"?")[0].decode("latin-1").endswith(GENERATING):
            return self._policy.choose(body, self.loads), path
        return 0, path

    async def connection(self, replica: int) -> ReplicaSide:
        """One that is idle, or a new one. Raises OSError if there is none to be had."""
        if self._idle[replica]:
            return self._idle[replica].pop()
        loop = asyncio.get_running_loop()
        _, side = await loop.create_connection(lambda: ReplicaSide(self, replica), *self._replicas[replica])
        return side

    def keep(self, side: ReplicaSide) -> None:
        self._idle[side.replica].append(side)

    def forget(self, side: ReplicaSide) -> None:
        if side in self._idle[side.replica]:
            self._idle[side.replica].remove(side)


class ClientSide(asyncio.Protocol):
    """A client's connection: one request at a time, those that come early wait."""

    transport: asyncio.Transport

    def __init__(self, router: Router) -> None:
        self._router = router
        self._unread = bytearray()
        self._serving: asyncio.Task[None] | None = None
        self._side: ReplicaSide | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if self._serving is not None:
            self._serving.cancel()
        if self._side is not None:
            self._side.drop()

    def pause_writing(self) -> None:
        if self._side is not None:
            self._side.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._side is not None:
            self._side.transport.resume_reading()

    def finished(self, keeps_alive: bool) -> None:
        """The response is complete."""
        self._side = None
        if keeps_alive:
            self._next()
        else:
            self.transport.close()

    def broken(self, has_begun: bool, was_reset: bool) -> None:
        """The replica's connection ended: this one does too, in the same way if the response `has_begun`."""
        self._side = None
        if not has_begun:
            self._refuse(502, b"Bad Gateway")
        elif was_reset:
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.transport.abort()
        else:
            self.transport.close()

    def _next(self) -> None:
        """Begin with the next request, if all of it is there and none is under way."""
        if self._side is not None or self._serving is not None:
            return
        end = self._unread.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._unread[: end + 2])
        if _CHUNKED.search(head):
            return self._refuse(411, b"Length Required")
        length = _LENGTH.search(head)
        whole = end + 4 + (int(length[1]) if length else 0)
        if len(self._unread) < whole:
            return
        body = bytes(self._unread[end + 4 : whole])
        del self._unread[:whole]
        method, path, rest = head.split(b" ", 2)
        routed = self._router.route(method, path, body)
        if routed is None:
            return self._refuse(404, b"Not Found")
        request = b"%b %b %b\r\n%b" % (method, routed[1], rest, body)
        self._serving = asyncio.get_running_loop().create_task(self._serve(routed[0], request, method == b"HEAD"))

    async def _serve(self, replica: int, request: bytes, is_head: bool) -> None:
        self._router.loads[replica] += 1
        try:
            self._side = await self._router.connection(replica)
            self._side.ask(request, self, is_head)
        except OSError:
            self._refuse(502, b"Bad Gateway")
        finally:
            self._serving = None
            if self._side is None:
                self._router.loads[replica] -= 1

    def _refuse(self, status: int, words: bytes) -> None:
        self.transport.write(b"HTTP/1.1 %d %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % (status, words))
        self.transport.close()


class ReplicaSide(asyncio.Protocol):
    """A connection to a replica; it is idle, or has one request of one client."""

    transport: asyncio.Transport

    def __init__(self, router: Router, replica: int) -> None:
        self.replica = replica
        self._router = router
        self._client: ClientSide | None = None
        self._is_head = False
        self._has_begun = False
        self._is_complete = False
        self._keeps_alive = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def ask(self, request: bytes, client: ClientSide, is_head: bool) -> None:
        self._client, self._is_head = client, is_head
        self._has_begun = self._is_complete = False
        self._parser = httptools.HttpResponseParser(self)
        self.transport.write(request)

    def drop(self) -> None:
        """The client is gone."""
        self._client = None
        self._router.loads[self.replica] -= 1
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        client = self._client
        if client is None:  # nobody asked for it
            self.transport.abort()
            return
        self._has_begun = True
        client.transport.write(data)
        self._parser.feed_data(data)
        if self._is_complete:
            keeps_alive = self._keeps_alive and not self._is_head
            self._client = None
            self._router.loads[self.replica] -= 1
            if keeps_alive:
                self._router.keep(self)
            else:
                self.transport.close()
            client.finished(keeps_alive)

    def connection_lost(self, error: Exception | None) -> None:
        self._router.forget(self)
        if self._client is not None:
            self._router.loads[self.replica] -= 1
            self._client.broken(self._has_begun, was_reset=error is not None)

    def on_headers_complete(self) -> None:
        self._is_complete = self._is_head
        self._keeps_alive = self._parser.should_keep_alive()  # later the parser has forgotten

    def on_message_complete(self) -> None:
        self._is_complete = True
